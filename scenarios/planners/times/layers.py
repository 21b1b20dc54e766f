"""What a rank computes in each kind of layer of a model, for one micro-batch, as columns over kinds of splits.

    layer_works(step, {"tp": [8], "cp": [1], "microbatch": [2], ...})
        {"embedding": LayerWork, "dense": LayerWork, "head": LayerWork}         and "experts" of a mixture of experts

With rows = microbatch * sequence / cp, t = tp, h the hidden size, elements of 2 bytes, forward / backward of a block:

    norms            4 rows h          6 rows h         unsplit by tp, unless sequence-parallel
    residual sums    6                 6                the same
    gated units      3 rows i / t      5 rows i / t     silu(gate) * up in one kernel; GELU 2 and 3
    rotary           4 rows (q + k) / t                 forward as backward
    unfused core     scores, mask, softmax and dropout read and write heads / t * rows * s elements
    dropout          2.5 and 2.5 rows h a branch        and a mask of a byte

Backward of a kernel that streams reads what it got and its output's gradient, and writes its input's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats, Numbers
from ...models.split import Precision
from ..configurations import CONTEXT_KINDS
from ..sizes.parameters import padded_vocabulary
from ..sizes.shapes import ExpertShapes, LayerShapes
from ..step import PlannedStep
from .kernels import CORE, ITEM_BYTES, TAIL, LayerWork

KEYS = ("tp", "cp", "cp_kind", "ep", "microbatch", "sequence_parallel")
"""the columns of configurations that the work of a layer depends on"""
WORD = 4
"""bytes of a float32"""
SplitKinds = Mapping[str, NDArray[Any]]  # Any: numbers and flags
RING = CONTEXT_KINDS.index("ring")


def layer_works(step: PlannedStep, kinds: SplitKinds, precision: Precision) -> dict[str, LayerWork]:
    """By kind of layer its work; UnimplementedError for a family of models without a closed form."""
    shapes = LayerShapes.of(step.model)
    rank = _Rank(step, shapes, kinds, ITEM_BYTES.get(precision, 2))
    works = {"embedding": rank.embedding(), "head": rank.head()}
    if shapes.dense_layers:
        works["dense"] = rank.dense_layer()
    if shapes.experts is not None and shapes.dense_layers < step.model.layers:
        works["experts"] = rank.expert_layer(shapes.experts)
    return works


class _Rank:
    """The sizes of a rank by kind of split, and the layers made of them."""

    def __init__(self, step: PlannedStep, shapes: LayerShapes, kinds: SplitKinds, item: float) -> None:
        self.step, self.shapes, self.item = step, shapes, item
        self.tp, self.cp, self.ep = kinds["tp"], kinds["cp"], kinds["ep"]
        self.ring = (kinds["cp_kind"] == RING) & (self.cp > 1)
        self.batch: Numbers = kinds["microbatch"]
        self.rows: Numbers = self.batch * step.sequence_length // self.cp
        self.scatters = kinds["sequence_parallel"] & (self.tp > 1)
        self.gathered_bytes: Floats = self.rows.astype(np.float64) * shapes.hidden * item
        """of the rows that products see"""
        self.own_bytes: Floats = self.gathered_bytes / np.where(self.scatters, self.tp, 1)
        """of the rows between them"""
        self.hidden = shapes.hidden
        self.classes: Numbers = padded_vocabulary(shapes, self.tp) // self.tp

    def work(self) -> LayerWork:
        """Nothing yet."""
        return LayerWork(len(self.tp))

    def entered(self, work: LayerWork, runs: float = 1.0) -> None:
        """Rows before products with columns of tp: gathered, or as they are; in backward gradients are summed."""
        size = self.gathered_bytes
        split, whole = np.where(self.scatters, runs, 0.0), np.where(self.scatters | (self.tp == 1), 0.0, runs)
        work.exchange("tp", "all_gather", "reduce_scatter", size, split)
        work.exchange("tp", "none", "all_gather", size, split if self.step.gathers_again else 0.0)
        work.exchange("tp", "none", "all_reduce", size, whole)

    def left(self, work: LayerWork, runs: float = 1.0, *, also: str = "") -> None:
        """Rows behind products with rows of tp: summed and scattered, or summed; the gradient's way back."""
        size = self.gathered_bytes
        split, whole = np.where(self.scatters, runs, 0.0), np.where(self.scatters | (self.tp == 1), 0.0, runs)
        work.exchange("tp", "reduce_scatter", "all_gather", size, split, also=also)
        work.exchange("tp", "all_reduce", "none", size, whole, also=also)

    def dense_layer(self) -> LayerWork:
        """Attention and a feed-forward network."""
        work = self.work()
        self._attention(work)
        self._branch_ends(work)
        self._feed_forward(work, self.shapes.units)
        return work

    def expert_layer(self, experts: ExpertShapes) -> LayerWork:
        """Attention, a router, routed experts and those that every token is sent to."""
        work = self.work()
        self._attention(work)
        self._branch_ends(work)
        self._experts(work, experts)
        if experts.shared_units:
            self._feed_forward(work, experts.shared_units)
        return work

    def embedding(self) -> LayerWork:
        """The rows of the table, summed over tp; backward adds them up to a gradient of the whole table."""
        work = self.work()
        rows, own = self.gathered_bytes, self.own_bytes
        masked = np.where(self.tp > 1, 2.0, 0.0) * rows
        table = self.classes.astype(np.float64) * self.hidden * self.item
        work.stream(2 * rows + masked, rows + masked + table, (3, 3))
        if self.step.dropout:
            work.stream(2.5 * own, 2.5 * own)
        if self.shapes.positions:
            work.stream(3 * own, own)
        self.left(work)
        return work

    def head(self) -> LayerWork:
        """The last norm, logits of the rank's classes, and their cross entropy."""
        work = self.work()
        row = self.own_bytes
        work.stream(2 * row, 3 * row)
        self.entered(work)
        work.product(self.rows, self.classes, self.hidden, has_weights=False)
        logits: Floats = self.rows.astype(np.float64) * self.classes
        if self.step.fused_loss:
            work.stream(self.item * logits, 2 * self.item * logits)
        else:  # copies in float32; maximum, difference, exponential, sum, quotient; the gradient is scaled and cast
            work.stream((self.item + 11 * WORD) * logits, (self.item + 4 * WORD) * logits, (8, 5))
        work.exchange("tp", "all_reduce", "none", WORD * self.rows.astype(np.float64), np.where(self.tp > 1, 3.0, 0.0))
        return work

    # Parts of a layer

    def _moved(self, columns: Numbers | int) -> Floats:
        """Bytes of rows of so many columns that are read and written."""
        return np.asarray(2.0 * self.rows * columns * self.item, dtype=np.float64)

    def _attention(self, work: LayerWork) -> None:
        self.entered(work)
        if self.shapes.is_latent:
            self._latent_attention(work)
        else:
            self._grouped_heads(work)
        self.left(work)

    def _grouped_heads(self, work: LayerWork) -> None:
        """Queries, keys and values in one product, the core, and the product behind it."""
        it, size = self.shapes, self.shapes.query_size
        heads, kv_heads = it.heads // self.tp, np.maximum(it.kv_heads // self.tp, 1)
        columns = (heads + 2 * kv_heads) * size
        work.product(self.rows, columns, self.hidden)
        if it.turned_size:
            turned = self._moved((heads + kv_heads) * size)
            work.stream(turned, turned, (2, 2))
        moved = self._moved(columns)
        work.stream(moved, moved)  # queries, keys and values become contiguous, and their gradients one
        self._core(work, heads, kv_heads)
        work.product(self.rows, self.hidden, heads * size)

    def _latent_attention(self, work: LayerWork) -> None:
        """Narrow rows of queries, and of keys and values; what is made of them for each head."""
        it = self.shapes
        heads = it.heads // self.tp
        if it.query_rank:
            work.product(self.rows, it.query_rank, self.hidden)
            work.stream(self._moved(it.query_rank), 1.5 * self._moved(it.query_rank))
        work.product(self.rows, heads * it.query_size, it.query_rank or self.hidden)
        work.product(self.rows, it.kv_rank + it.turned_size, self.hidden)
        work.stream(self._moved(it.kv_rank), 1.5 * self._moved(it.kv_rank))
        work.product(self.rows, heads * (it.query_size - it.turned_size + it.value_size), it.kv_rank)
        made = self._moved(heads * (2 * it.query_size + it.value_size))
        work.stream(made, made, (6, 6))  # heads are joined of parts with and without positions
        self._core(work, heads, heads)
        work.product(self.rows, self.hidden, heads * it.value_size)

    def _core(self, work: LayerWork, heads: Numbers, kv_heads: Numbers) -> None:
        """Attention of the rank's queries to all positions that they see, with what cp exchanges for it."""
        key, value, model = self.shapes.query_size, self.shapes.value_size, self.step.model
        length, seen = self.step.sequence_length, model.attended(self.step.sequence_length)
        own_heads = np.maximum(np.where(self.ring, heads, heads // self.cp), 1)
        own_kv = np.maximum(np.where(self.ring, kv_heads, kv_heads // self.cp), 1)
        blocks = np.where(self.ring, self.cp, 1)
        self._context(work, heads, kv_heads)
        if self.step.fused_attention:
            square = 2 * length * seen - seen * seen  # twice the pairs of a query and a key that it sees
            work.launch(blocks - 1.0, 2 * (blocks - 1.0), also=CORE)  # all blocks but a rank's own are halves
            work.attention(
                blocks.astype(np.float64),
                batch=self.batch,
                seq_len=length // blocks,
                heads=own_heads,
                kv_heads=np.where(own_heads % own_kv == 0, own_kv, 1),
                qk_head_dim=key,
                v_head_dim=value,
                square=np.maximum(square // (blocks * blocks), 1),
            )
            return
        pairs, rows = self.batch * own_heads, length // blocks
        for n, k in ((length, key), (value, length)):
            work.product(rows, n, k, batch=pairs, category="attention", also=CORE, has_weights=False)
        scores = pairs * rows * float(length) * self.item
        work.stream(2 * scores, 3 * scores, also=CORE)
        if self.step.dropout:
            work.stream(2.5 * scores, 2.5 * scores, also=CORE)

    def _context(self, work: LayerWork, heads: Numbers, kv_heads: Numbers) -> None:
        """Keys and values go round a ring, or heads are exchanged for rows before and behind attention."""
        key, value = self.shapes.query_size, self.shapes.value_size
        rows = self.rows.astype(np.float64) * self.item
        keys = rows * kv_heads * (key + value)
        work.exchange("cp", "send_recv", "send_recv", keys, np.where(self.ring, self.cp - 1, 0).astype(np.float64))
        exchanges = np.where(self.ring | (self.cp == 1), 0.0, 1.0)
        before, behind = rows * heads * key + keys, rows * heads * value
        work.exchange("cp", "all_to_all", "all_to_all", before, exchanges)
        work.exchange("cp", "all_to_all", "all_to_all", behind, exchanges)
        moved = 2 * (before + behind) * exchanges
        work.stream(moved, moved, (0, 0))
        work.launch(4 * exchanges, 4 * exchanges)

    def _branch_ends(self, work: LayerWork) -> None:
        """Two norms, two residual sums, the gradients of biases, and dropout of both branches."""
        row = self.own_bytes
        work.stream(4 * row, 6 * row, (2, 2))
        work.stream(3 * row, 3 * row)
        work.stream(3 * row, 3 * row, also=TAIL)
        if self.step.dropout:
            work.stream(2 * 1.5 * row, 2 * 2.5 * row, (0, 2))
        if self.shapes.biases:
            work.stream(0.0, 2 * row, (0, 2))

    def _feed_forward(self, work: LayerWork, whole_units: int) -> None:
        """Two products around GELU, or three around a gated unit."""
        units = whole_units // self.tp
        made = self._moved(units) / 2
        self.entered(work)
        if self.shapes.is_gated:
            work.product(self.rows, 2 * units, self.hidden)
            work.stream(3 * made, 5 * made)
        else:
            work.product(self.rows, units, self.hidden)
            work.stream(2 * made, 4 * made, (1, 2))
        work.product(self.rows, self.hidden, units, also=TAIL)
        self.left(work, also=TAIL)

    def _experts(self, work: LayerWork, experts: ExpertShapes) -> None:
        """A router; rows sorted by expert, sent to its rank, multiplied, sent back and summed.

        Rows of a rank's own micro-batch, parted over tp; the busiest rank of ep gets `imbalance` times the mean.
        """
        tokens = self.rows / self.tp
        sent, row = tokens * experts.topk, self.hidden * self.item
        work.product(np.ceil(tokens).astype(np.int64), experts.count, self.hidden, has_weights=False)
        work.stream(tokens * experts.count * WORD * 6, tokens * experts.count * WORD * 4, (16, 12))
        received = sent * np.where(self.ep > 1, self.step.imbalance, 1.0)
        groups = experts.count // self.ep
        each = np.maximum(np.ceil(received / groups), 1).astype(np.int64)
        for permuted in (sent, received, received, sent):  # before and behind both exchanges
            work.stream(2 * permuted * row, 2 * permuted * row, (2, 2))
        often = np.where(self.ep > 1, 1.0, 0.0)
        for _ in range(2):
            work.exchange("ep", "all_to_all", "all_to_all", received * row, often)
        gradient = self.step.gradient_bytes
        work.grouped(groups, each, 2 * experts.units, self.hidden, gradient)
        made = each * groups * experts.units * self.item
        work.stream(3 * made, 5 * made)
        work.grouped(groups, each, self.hidden, experts.units, gradient)
        parted = np.where((self.tp > 1) & ~self.scatters, 1.0, 0.0)
        work.exchange("tp", "all_gather", "reduce_scatter", self.gathered_bytes, parted)
