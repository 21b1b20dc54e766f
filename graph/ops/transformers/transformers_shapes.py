"""Shape functions of the ops that transformers are made of."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.shape_functions import ShapeContext, merge, shape_fn, shape_text, with_rank
from ...dtypes import Shape
from .attention_sizes import AttentionSizes, attention_sizes, check_statistics_type
from .rotary_sizes import rotary_shape


def _sizes(c: ShapeContext) -> AttentionSizes:
    check_statistics_type(c.op, c.attrs["T"], c.attrs["U"])
    return attention_sizes(*c.inputs[:3], sequence_first=c.attrs["sequence_first"])


def _in_order(c: ShapeContext, batch: int | None, positions: int | None, *more: int | None) -> Shape:
    return (positions, batch, *more) if c.attrs["sequence_first"] else (batch, positions, *more)


def _outputs(c: ShapeContext, sizes: AttentionSizes) -> tuple[Shape, Shape]:
    batch, queries, heads = sizes[:3]
    return _in_order(c, batch, queries, heads, sizes.value_depth), (batch, heads, queries)


def _merged(name: str, given: Shape, wanted: Shape) -> Shape:
    try:
        return merge(given, wanted)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"{name} has the shape {shape_text(given)}, but by the other inputs it is {shape_text(wanted)}"
        ) from None


@shape_fn("Partita>FlashAttention")
def flash_attention(c: ShapeContext) -> Sequence[Shape]:
    """[b, s, heads, d], [b, t, kv_heads, d], [b, t, kv_heads, e] -> [b, s, heads, e], [b, heads, s]."""
    return _outputs(c, _sizes(c))


@shape_fn("Partita>FlashAttentionGrad")
def flash_attention_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of query, key and value, as far as they are known from all inputs."""
    sizes = _sizes(c)
    output, logsumexp = _outputs(c, sizes)
    if c.attrs["Nd_logsumexp"] > 1:
        raise InvalidArgumentError(f"{c.op} has one d_logsumexp or none, not {c.attrs['Nd_logsumexp']}")
    wanted = ("output", output), ("logsumexp", logsumexp), ("d_output", output), ("d_logsumexp", logsumexp)
    for (name, shape), given in zip(wanted, c.inputs[3:], strict=False):  # without the last one where there is none
        _merged(name, given, shape)
    batch, queries, heads, depth, keys, kv_heads, value_depth = sizes
    return (
        _in_order(c, batch, queries, heads, depth),
        _in_order(c, batch, keys, kv_heads, depth),
        _in_order(c, batch, keys, kv_heads, value_depth),
    )


def _normalised(c: ShapeContext) -> tuple[Shape, Shape]:
    """The shape of x and of the numbers per row; the last axis of x is as long as the gain."""
    check_statistics_type(c.op, c.attrs["T"], c.attrs["U"])
    x, (size,) = c.inputs[0], with_rank(c.inputs[1], 1)
    if x is None:
        return None, None
    if not x or (size is not None and x[-1] not in (None, size)):
        raise InvalidArgumentError(
            f"x has the shape {shape_text(x)} and gain {shape_text(c.inputs[1])}; the last axis of x must be as long "
            "as gain"
        )
    return (*x[:-1], size if x[-1] is None else x[-1]), x[:-1]


@shape_fn("Partita>RMSNorm")
def rms_norm(c: ShapeContext) -> Sequence[Shape]:
    """[..., n], [n] -> [..., n], [...]."""
    return _normalised(c)


@shape_fn("Partita>RMSNormGrad")
def rms_norm_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of x and gain."""
    x, rows = _normalised(c)
    _merged("inverse_rms", c.inputs[2], rows)
    x = _merged("d_y", c.inputs[3], x)
    gain = c.inputs[1] if x is None else (x[-1],)
    return x, gain


@shape_fn("Partita>LayerNorm")
def layer_norm(c: ShapeContext) -> Sequence[Shape]:
    """[..., n], [n], [n] -> [..., n], [...], [...]."""
    _merged("offset", c.inputs[2], with_rank(c.inputs[1], 1))
    x, rows = _normalised(c)
    return x, rows, rows


@shape_fn("Partita>LayerNormGrad")
def layer_norm_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shapes of x, gain and offset."""
    x, rows = _normalised(c)
    for port, name in (2, "mean"), (3, "inverse_deviation"):
        _merged(name, c.inputs[port], rows)
    x = _merged("d_y", c.inputs[4], x)
    gain = c.inputs[1] if x is None else (x[-1],)
    return x, gain, gain


@shape_fn("Partita>Gelu")
def gelu(c: ShapeContext) -> Sequence[Shape]:
    """The shape of x."""
    return (c.inputs[0],)


@shape_fn("Partita>GeluGrad")
def gelu_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of x."""
    return (_merged("d_y", c.inputs[1], c.inputs[0]),)


@shape_fn("Partita>GatedSilu")
def gated_silu(c: ShapeContext) -> Sequence[Shape]:
    """The shape of gate and up."""
    return (_merged("up", c.inputs[1], c.inputs[0]),)


@shape_fn("Partita>GatedSiluGrad")
def gated_silu_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of gate and up."""
    shape = _merged("d_y", c.inputs[2], _merged("up", c.inputs[1], c.inputs[0]))
    return shape, shape


@shape_fn("Partita>Rotary")
def rotary(c: ShapeContext) -> Sequence[Shape]:
    """The shape of x."""
    return (rotary_shape(*c.inputs, sequence_first=c.attrs["sequence_first"]),)
