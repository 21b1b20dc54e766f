"""What `Split` and `Split.check` refuse, in columns: which rows break which rule, in the order in which they look.

A rule is a sentence and a column of flags. A row counts for the first rule that it breaks, as a split is refused by the
first check that it fails; so a later rule may say anything of a row that an earlier one has refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from ....graph.arrays import Flags, Numbers
from ..configurations import CONTEXT_KINDS
from .grid import AxisTable
from .space import SearchSpace

Rule: TypeAlias = tuple[str, Flags]

TOO_LARGE = "does not fit in memory"


class Unbroken:
    """The rows that break no rule, and how many others count for each."""

    def __init__(self, rows: int, weights: Numbers | None = None) -> None:
        self.flags: Flags = np.ones(rows, dtype=np.bool_)
        self.counts: Counter[str] = Counter()
        self._weights = weights

    def add(self, rules: Iterable[Rule]) -> None:
        """Takes out the rows that break a rule; each counts as many times as it has weight."""
        for sentence, broken in rules:
            rows = self.flags & broken
            count = int(rows.sum() if self._weights is None else self._weights[rows].sum())
            if count:
                self.counts[sentence] += count
                self.flags &= ~rows


def layout_rules(space: SearchSpace, table: AxisTable) -> Iterator[Rule]:
    """Rules of what `grid.layouts` has."""
    tp, dp, ep = (table[name] for name in ("tp", "dp", "ep"))
    yield "ep does not divide dp", dp % ep != 0
    yield "dp * microbatch does not divide the global batch", space.global_batch % (dp * table["microbatch"]) != 0
    yield from _pipeline_rules(space, table)
    sizes, kv_heads = space.model.cut_by_tensor_parallel, space.model.shared_heads or 1
    if not sizes:
        yield "the model has nothing that tp cuts", tp > 1
    for name, size in sizes.items():
        yield f"tp does not divide {name}", size % tp != 0
    yield "tp is neither a divisor nor a multiple of kv_heads", (kv_heads % tp != 0) & (tp % kv_heads != 0)
    shared = space.model.shared_by_expert_parallel
    if not shared:
        yield "the model has no experts for ep", ep > 1
    for name, size in shared.items():
        yield f"ep does not divide {name}", size % ep != 0
    yield from _sequence_rules(space, table)
    if shared and space.rows is not None:
        yield (
            "tp does not divide the rows of a micro-batch, which the way to experts parts",
            ~_rows_divide(space, table),
        )


def variant_rules(space: SearchSpace, table: AxisTable) -> Iterator[Rule]:
    """Rules of what `grid.Variants` adds."""
    yield "zero_group does not divide dp", table["dp"] % table["zero_group"] != 0
    yield "zero=3 needs pp=1", (table["zero"] == 3) & (table["pp"] > 1) & (table["dp"] > 1)
    if space.rows is None:
        yield "sequence_parallel cuts a sequence, the model has none", table["sequence_parallel"] > 0
    else:
        uneven = (table["sequence_parallel"] > 0) & ~_rows_divide(space, table)
        yield "tp does not divide the rows of a micro-batch, which sequence_parallel parts", uneven


def _pipeline_rules(space: SearchSpace, table: AxisTable) -> Iterator[Rule]:
    pp, interleave = table["pp"], table["interleave"]
    microbatches, stages = space.global_batch // (table["dp"] * table["microbatch"]), pp * interleave
    yield "pp does not divide the micro-batches of stages that interleave", (interleave > 1) & (microbatches % pp != 0)
    yield "interleave needs pp of 2 or more", (interleave > 1) & (pp == 1)
    given = space.asked.same.get("stages")
    if given is None:
        yield "there are more stages than layers", stages > space.model.layers
    else:
        yield "pp * interleave is not the number of stages given", stages != len(given)


def _sequence_rules(space: SearchSpace, table: AxisTable) -> Iterator[Rule]:
    tp, cp = table["tp"], table["cp"]
    if space.rows is None:
        yield "cp cuts a sequence, the model has none", cp > 1
        return
    is_ring = (cp > 1) & (table["cp_kind"] == CONTEXT_KINDS.index("ring"))
    yield "2 * cp does not divide the sequence, as a ring needs", is_ring & (space.rows % (2 * cp) != 0)
    yield "cp does not divide the sequence", space.rows % cp != 0
    heads, shared = space.model.cut_by_tensor_parallel.get("heads", 1) // tp, space.model.shared_heads
    kv_heads = heads if shared is None else np.maximum(shared // tp, 1)
    kv_heads = np.maximum(kv_heads, 1)  # where tp is more than the heads, which is refused by then
    shares = (heads % cp == 0) & ((kv_heads % cp == 0) | (cp % kv_heads == 0))
    yield "cp cannot share out the heads of a rank", (cp > 1) & ~is_ring & ~shares
    if space.model.attended(space.rows) < space.rows:
        yield "a ring has no window of attention", is_ring


def _rows_divide(space: SearchSpace, table: AxisTable) -> Flags:
    """Whether tp divides the rows of a micro-batch on a rank."""
    rows = (space.rows or 0) // table["cp"] * table["microbatch"]
    divides: Flags = rows % table["tp"] == 0
    return divides
