"""Slopes of attention, norms, activations and rotary positions, and the same layers in TensorFlow's ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import NotFoundError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.graph.gradients import gradients
from tests.devices.kernels.transformers.plain_attention import seen
from tests.graph.gradients.numeric import Example, example, normal

Layer = Callable[..., Sequence[Tensor]]
"""takes a builder and tensors"""
QKV = (normal(2, 5, 4, 3), normal(2, 6, 2, 3), normal(2, 6, 2, 2))


def attention(**attrs: object) -> Layer:
    """Output and logsumexp."""
    return lambda b, *qkv: b.op("Partita>FlashAttention", *qkv, U="double", attrs=attrs)


def swapped(x: Array) -> Array:
    """With the sequence first."""
    return np.ascontiguousarray(x.swapaxes(0, 1))


def rotary(**attrs: object) -> Layer:
    """What is turned."""
    return lambda b, *inputs: b.op("Partita>Rotary", *inputs, attrs=attrs)


EXAMPLES: dict[str, Example] = {
    "attention": example(attention(), *QKV),
    "open": example(attention(causal=True, query_offset=1), *QKV, open_shapes=True),
    "window": example(attention(causal=True, window=2, scale=0.7, query_offset=1), *QKV),
    "near": example(attention(window=2), *QKV),
    "sequence first": example(attention(causal=True, sequence_first=True), *map(swapped, QKV)),
    "some see nothing": example(lambda b, *qkv: attention(causal=True, key_offset=2)(b, *qkv)[0], *QKV),
    "logsumexp": example(lambda b, *qkv: attention()(b, *qkv)[1], *QKV),
    "norm": example(lambda b, x, gain: b.op("Partita>RMSNorm", x, gain, U="double"), normal(2, 3, 4), normal(4)),
    "norm alone": example(
        lambda b, x, gain: b.op("Partita>RMSNorm", x, gain, U="double", epsilon=0.5)[0], normal(3, 4), normal(4)
    ),
    "factor": example(
        lambda b, x, gain: b.op("Partita>RMSNorm", x, gain, U="double")[1], normal(2, 4), normal(4), flat=[1]
    ),
    "layer norm": example(
        lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double"), normal(2, 3, 4), normal(4), normal(4, seed=1)
    ),
    "layer norm alone": example(
        lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double", epsilon=0.5)[0], normal(3, 4), normal(4), normal(4)
    ),
    "mean": example(
        lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double")[1], normal(2, 4), normal(4), normal(4), flat=[1, 2]
    ),
    "deviation": example(
        lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double")[2], normal(2, 4), normal(4), normal(4), flat=[1, 2]
    ),
    "gelu": example(lambda b, x: b.op("Partita>Gelu", x), normal(3, 4)),
    "gelu by tanh": example(lambda b, x: b.op("Partita>Gelu", x, approximate=True), normal(3, 4)),
    "gated silu": example(lambda b, *xs: b.op("Partita>GatedSilu", *xs), normal(3, 4), normal(3, 4, seed=1)),
    "halves": example(rotary(), normal(2, 3, 4, 7), normal(3, 3), normal(3, 3, seed=1), twice=True),
    "pairs": example(rotary(interleaved=True, inverse=True), normal(2, 3, 1, 6), normal(3, 3), normal(3, 3, seed=1)),
    "open halves": example(
        rotary(inverse=True, sequence_first=True),
        normal(3, 2, 4, 7),
        normal(3, 2),
        normal(3, 2, seed=1),
        open_shapes=True,
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_slopes(name: str) -> None:
    """The gradients say what small steps of the inputs do to the outputs."""
    await EXAMPLES[name].check()


async def test_tables_that_nobody_asks_about_cost_nothing() -> None:
    """The gradient of what is turned alone is one node, whatever would be needed for the tables."""
    b = GraphBuilder()
    x, table = b.placeholder("x", "float32", (1, 3, 1, 4)), b.constant(np.ones((3, 2), np.float32))
    y = b.op("Partita>Rotary", x, table, table)
    graph = b.graph()
    gradients(graph, [y[0].name], [x.name])
    ops = Counter(node.op for node in graph.op_nodes())
    assert ops == Counter({"Placeholder": 1, "Const": 1, "OnesLike": 1, "Partita>Rotary": 2})


async def test_a_logsumexp_that_nobody_reads_costs_nothing() -> None:
    """The gradient of the output alone is one node, which gets no zeros."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1, 3, 1, 4))
    y = b.op("Partita>FlashAttention", x, b.constant(QKV[0][:1, :3, :1, :1].repeat(4, 3).astype("f")), x)
    graph = b.graph()
    gradients(graph, [y[0].name], [x.name])
    ops = Counter(node.op for node in graph.op_nodes())
    assert (ops["ZerosLike"], ops["Partita>FlashAttentionGrad"]) == (0, 1)


@pytest.mark.parametrize("op", ["Partita>FlashAttention", "Partita>RMSNorm"])
def test_no_second_gradient(op: str) -> None:
    """The gradients of gradients that have none are refused by name."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (1, 3, 1, 4))
    y = b.op(op, x, x, x) if op.endswith("Attention") else b.op(op, x, b.constant(np.ones(4, np.float32)))
    graph = b.graph()
    (once,) = gradients(graph, [y[0].name], [x.name])
    assert once is not None
    with pytest.raises(NotFoundError, match=f"{op}Grad"):
        gradients(graph, [once], [x.name])


def spelled_attention(b: GraphBuilder, query: Tensor, key: Tensor, value: Tensor) -> Sequence[Tensor]:
    """Causal, from position 1 on, heads 0 and 1 share keys: the square of products in TensorFlow's ops."""
    mask = b.constant(seen(5, 6, causal=True, query_offset=1))
    keys, values = (b.op("GatherV2", x, b.constant([0, 0, 1, 1]), 2)[0] for x in (key, value))
    products = b.op("Einsum", [query, keys], equation="bshd,bthd->bhst")[0] * b.constant(3**-0.5, "float64")
    products = b.op("SelectV2", mask, products, b.constant(-np.inf, "float64"))[0]
    greatest = b.op("StopGradient", b.op("Max", products, b.constant([-1]), keep_dims=True))[0]
    powers = b.op("Exp", products - greatest)[0]
    total = b.op("Sum", powers, b.constant([-1]))[0]
    logsumexp = b.op("Log", total)[0] + b.op("Squeeze", greatest, squeeze_dims=[-1])[0]
    return b.op("Einsum", [b.op("Softmax", products)[0], values], equation="bhst,bthe->bshe")[0], logsumexp


def spelled_norm(b: GraphBuilder, x: Tensor, gain: Tensor) -> Sequence[Tensor]:
    """By the mean of squares."""
    mean = b.op("Mean", b.op("Square", x), b.constant([-1]), keep_dims=True)[0]
    factor = b.op("Rsqrt", mean + b.constant(np.float64(np.float32(1e-6))))[0]
    return x * factor * gain, b.op("Squeeze", factor, squeeze_dims=[-1])[0]


def spelled_layer_norm(b: GraphBuilder, x: Tensor, gain: Tensor, offset: Tensor) -> Sequence[Tensor]:
    """By the mean, and the mean of squares."""
    last = b.constant([-1])
    mean = b.op("Mean", x, last, keep_dims=True)[0]
    variance = b.op("Mean", b.op("Square", x - mean), last, keep_dims=True)[0]
    factor = b.op("Rsqrt", variance + b.constant(np.float64(np.float32(1e-5))))[0]
    rows = [b.op("Squeeze", each, squeeze_dims=[-1])[0] for each in (mean, factor)]
    return (x - mean) * factor * gain + offset, *rows


def spelled_gelu(b: GraphBuilder, x: Tensor) -> Sequence[Tensor]:
    """By the error function."""
    return [
        x
        * (b.op("Erf", x * b.constant(0.5**0.5, "float64"))[0] + b.constant(1.0, "float64"))
        * b.constant(0.5, "float64")
    ]


def spelled_gated_silu(b: GraphBuilder, gate: Tensor, up: Tensor) -> Sequence[Tensor]:
    """By a sigmoid."""
    return [gate * b.op("Sigmoid", gate)[0] * up]


def spelled_rotary(b: GraphBuilder, x: Tensor, cosines: Tensor, sines: Tensor) -> Sequence[Tensor]:
    """x cos + (second halves negated, first) sin, both tables twice as wide."""
    first, second = b.op("Split", 3, x, num_split=2)
    swapped_halves = b.op("ConcatV2", [-second, first], 3)[0]
    wide = [b.op("ExpandDims", b.op("ConcatV2", [t, t], 1), 1)[0] for t in (cosines, sines)]
    return [x * wide[0] + swapped_halves * wide[1]]


SPELLED: dict[str, tuple[Layer, Layer, Sequence[Array]]] = {
    "attention": (attention(causal=True, query_offset=1), spelled_attention, QKV),
    "norm": (lambda b, *xs: b.op("Partita>RMSNorm", *xs, U="double"), spelled_norm, (normal(2, 3, 4), normal(4))),
    "layer norm": (
        lambda b, *xs: b.op("Partita>LayerNorm", *xs, U="double"),
        spelled_layer_norm,
        (normal(2, 3, 4), normal(4), normal(4, seed=1)),
    ),
    "gelu": (lambda b, x: [b.op("Partita>Gelu", x)[0]], spelled_gelu, (normal(3, 4),)),
    "gated silu": (
        lambda b, *xs: [b.op("Partita>GatedSilu", *xs)[0]],
        spelled_gated_silu,
        (normal(3, 4), normal(3, 4, seed=1)),
    ),
    "rotary": (rotary(), spelled_rotary, (normal(2, 3, 4, 6), normal(3, 3), normal(3, 3, seed=1))),
}


@pytest.mark.parametrize("name", SPELLED)
async def test_the_same_in_tensorflows_ops(name: str) -> None:
    """Values and gradients of all outputs, in float64."""
    own, spelled, xs = SPELLED[name]
    for got, wanted in zip(await _values(own, xs), await _values(spelled, xs), strict=True):
        np.testing.assert_allclose(got, wanted, 1e-11, 1e-12)


async def _values(layer: Layer, xs: Sequence[Array]) -> list[Any]:
    """The outputs, and the gradients of all inputs by random weights of the outputs."""
    b = GraphBuilder()
    inputs = [b.placeholder(f"x{i}", x.dtype.name, x.shape) for i, x in enumerate(xs)]
    ys = list(layer(b, *inputs))
    weights = [b.placeholder(f"w{i}", "float64") for i in range(len(ys))]
    graph = b.graph()
    names = [y.name for y in ys]
    slopes = gradients(graph, names, [x.name for x in inputs], [w.name for w in weights])
    feeds = {x.name: value for x, value in zip(inputs, xs, strict=True)}
    async with open_session(graph.to_graph_def()) as session:
        values = await session.run(names, feeds)
        weighed = {w.name: normal(*v.shape, seed=7) for w, v in zip(weights, values, strict=True)}
        return [*values, *await session.run([s for s in slopes if s is not None], feeds | weighed)]
