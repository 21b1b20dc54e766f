"""Costs of the ops that transformers are made of.

Attention counts its products alone, a multiplication and an addition per term, of the pairs of a query and a key that
it sees: a causal one does about half of the square. Keys that no query sees are not read.
"""

from __future__ import annotations

from ....graph.ops.transformers.attention_sizes import VisibleKeys
from ..kernel_run import KernelRun, rows_run, runs_as, streams_as
from ..op_cost import CostContext, bytes_moved, flops, input_bytes, layers, output_bytes
from ..op_forms import Layer

LEAST_QUERIES = 64
"""a block of rows: for fewer queries kernels share out the keys instead, and read them as fast as the memory is"""


def _positions(c: CostContext) -> tuple[int, int]:
    """How many queries and keys there are."""
    axis = 0 if c.attrs.get("sequence_first") else 1
    return c.inputs[0][axis], c.inputs[1][axis]


def _pairs(c: CostContext) -> int:
    """Pairs of a query and a key that it sees, of all heads of the batch."""
    batch = c.inputs[0][1 if c.attrs.get("sequence_first") else 0]
    return batch * c.inputs[0][2] * VisibleKeys.of(c.attrs).pairs(*_positions(c))


@flops("Partita>FlashAttention", matrix="attention")
def attention(c: CostContext) -> int:
    """The product of query and key, and of what becomes of it and value."""
    return 2 * _pairs(c) * (c.inputs[0][3] + c.inputs[2][3])


@flops("Partita>FlashAttentionGrad", matrix="attention")
def attention_gradient(c: CostContext) -> int:
    """Five products: query and key again, d query and d key; d value, and d output and value."""
    return 2 * _pairs(c) * (3 * c.inputs[0][3] + 2 * c.inputs[2][3])


@layers("Partita>FlashAttention")
def attention_layer(c: CostContext) -> Layer | None:
    """A block of queries goes along all keys that one of them sees."""
    return _layer(c, "fwd", VisibleKeys.of(c.attrs).most(*_positions(c)))


@layers("Partita>FlashAttentionGrad")
def attention_gradient_layer(c: CostContext) -> Layer | None:
    """A block of keys goes along all queries that see one of them."""
    queries, keys = _positions(c)
    return _layer(c, "bwd", VisibleKeys.of(c.attrs).turned().most(keys, queries))


def _layer(c: CostContext, direction: str, longest: int) -> Layer | None:
    queries, keys = _positions(c)
    if queries < LEAST_QUERIES:
        return None
    sizes = {
        "batch": c.inputs[0][1 if c.attrs.get("sequence_first") else 0],
        "seq_len": longest,
        "heads": c.inputs[0][2],
        "kv_heads": c.inputs[1][2],
        "qk_head_dim": c.inputs[0][3],
        "v_head_dim": c.inputs[2][3],
        "square": 2 * VisibleKeys.of(c.attrs).pairs(queries, keys),
    }
    return Layer("attention", direction, sizes)


@bytes_moved("Partita>FlashAttention", "Partita>FlashAttentionGrad")
def attention_bytes(c: CostContext) -> int:
    """All tensors once, but for the rows of keys and values that lie outside of every query's window."""
    queries, keys = _positions(c)
    visible = VisibleKeys.of(c.attrs)
    seen = visible.span(queries - 1, keys)[1] - visible.span(0, keys)[0] if queries else 0
    unseen = sum(c.bytes_in(port) // keys * (keys - seen) for port in (1, 2)) if keys else 0
    return input_bytes(c) + output_bytes(c) - unseen


@runs_as("Partita>LayerNorm", "Partita>RMSNorm")
def norm_run(c: CostContext) -> KernelRun:
    """A layer norm reads and writes each element once; an RMS norm has one mean less, which no row tells."""
    return rows_run(c, "layer_norm")


@runs_as("Partita>LayerNormGrad", "Partita>RMSNormGrad")
def norm_gradient_run(c: CostContext) -> KernelRun:
    """The input and the output's gradient are read, the input's gradient is written."""
    return rows_run(c, "layer_norm", 3)


streams_as("gelu", "Partita>Gelu")


@flops("Partita>RMSNorm")
def rms_norm(c: CostContext) -> int:
    """Per element: its square and the sum (2), the factor and the gain (2); per row a mean, a root and a division."""
    return 4 * c.elements_in() + 4 * c.elements_out(1)


@flops("Partita>RMSNormGrad")
def rms_norm_gradient(c: CostContext) -> int:
    """Per element: x r (1), its product with d y and the sum over rows (2), d y gain (1), the mean (2), d x (3)."""
    return 9 * c.elements_in()


@flops("Partita>LayerNorm")
def layer_norm(c: CostContext) -> int:
    """Per element: the mean (1), the distance and its square (2), the sum (1), the factor, gain and offset (3)."""
    return 7 * c.elements_in() + 5 * c.elements_out(1)


@flops("Partita>LayerNormGrad")
def layer_norm_gradient(c: CostContext) -> int:
    """Per element: (x - mean) r (2), its product with d y and sums over rows (3), d y gain (1), means (3), d x (4)."""
    return 13 * c.elements_in()


_TANH, _SIGMOID = 36, 40
"""operations of one element, as those of the ops Tanh and Sigmoid are counted"""


@flops("Partita>Gelu")
def gelu(c: CostContext) -> int:
    """Per element: Phi(x) as an operation and a product; by tanh a polynomial (5), tanh, a sum and two products."""
    return (_TANH + 8 if c.attrs["approximate"] else 2) * c.elements_in()


@flops("Partita>GeluGrad")
def gelu_gradient(c: CostContext) -> int:
    """Per element: Phi(x) again, its slope (4; by tanh 7), and a sum and two products."""
    return (_TANH + 17 if c.attrs["approximate"] else 8) * c.elements_in()


@flops("Partita>GatedSilu")
def gated_silu(c: CostContext) -> int:
    """Per element: a sigmoid and two products."""
    return (_SIGMOID + 2) * c.elements_in()


@flops("Partita>GatedSiluGrad")
def gated_silu_gradient(c: CostContext) -> int:
    """Per element: the sigmoid, d up (2), the slope of silu (4) and d gate (2)."""
    return (_SIGMOID + 8) * c.elements_in()


@flops("Partita>Rotary")
def rotary(c: CostContext) -> int:
    """Per element that is turned two multiplications and an addition."""
    heads = c.elements_in() // max(1, c.inputs[0][3])
    return 3 * heads * 2 * c.inputs[1][1]
