"""Attention in float32, for which no GPU has a fused kernel on matrix units: the kernels of its parts.

    1024 queries and keys, 12 heads of 64       12 products 1024 x 64 x 1024, scores scaled and masked, a softmax,
                                                12 products 1024 x 1024 x 64
    its gradient                                12 products each for d value, d scores, d query, d key

Scores are kept in memory, of all pairs: a causal mask spares nothing.
"""

from __future__ import annotations

from ..kernel_run import STREAMS, KernelRun, parts_run_as, product_of_batch
from ..op_cost import CostContext


class _Sizes:
    """Sequences times heads, queries, keys, and widths of a query and a value."""

    def __init__(self, c: CostContext) -> None:
        axis = 0 if c.attrs.get("sequence_first") else 1
        self.queries, self.keys = c.inputs[0][axis], c.inputs[1][axis]
        self.batch = c.inputs[0][1 - axis] * c.inputs[0][2]
        self.width, self.value_width = c.inputs[0][3], c.inputs[2][3]
        self.is_masked = bool(c.attrs.get("causal"))

    def on_scores(self, op: str, times: float = 1.0) -> KernelRun:
        """A kernel along the keys of each query."""
        return KernelRun(STREAMS, {"op": op}, {"rows": self.batch * self.queries, "columns": self.keys}, times)

    def product(self, m: int, n: int, k: int) -> KernelRun:
        """A product for each head of each sequence."""
        return product_of_batch(self.batch, m, n, k)


@parts_run_as("Partita>FlashAttention")
def attention_parts(c: CostContext) -> list[KernelRun]:
    """Scores, their scale and mask, softmax, and the sums of values."""
    s = _Sizes(c)
    masks = [s.on_scores("mulu")] if s.is_masked else []
    scores, sums = s.product(s.queries, s.keys, s.width), s.product(s.queries, s.value_width, s.keys)
    return [scores, s.on_scores("mulu"), *masks, s.on_scores("softmax"), sums]


@parts_run_as("Partita>FlashAttentionGrad")
def attention_gradient_parts(c: CostContext) -> list[KernelRun]:
    """d value, d scores through the softmax, their scale and mask, d query and d key.

    Scores were kept by the forward pass. The gradient of a softmax reads two arrays and writes one.
    """
    s = _Sizes(c)
    masks = [s.on_scores("mulu")] if s.is_masked else []
    values = [s.product(s.keys, s.value_width, s.queries), s.product(s.queries, s.keys, s.value_width)]
    keys = [s.product(s.queries, s.width, s.keys), s.product(s.keys, s.width, s.queries)]
    return [*values, s.on_scores("softmax", 1.5), s.on_scores("mulu"), *masks, *keys]
