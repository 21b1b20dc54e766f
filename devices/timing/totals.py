"""Sums over the events of a timeline: by op, and over all runs of every event.

    MatMul   10 us, 1 run      MatMul   20 us, 2 runs        OpTotal("MatMul", runs=3, time_ns=50_000, ...)

Sums are exact: where 64 bits might not hold one, it is made of Python's integers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .events import OCCUPYING

if TYPE_CHECKING:
    from ...graph.arrays import Numbers
    from .events import Events


class OpTotal(NamedTuple):
    """All events of one op together."""

    op: str
    runs: int
    time_ns: int
    flops: int
    bytes: int


def totals_by_op(columns: Events, many: int) -> list[OpTotal]:
    """Totals per op over the events that occupy their stream, `many` times each, longest first, ties by name."""
    counted = columns.of_kind(*OCCUPYING)
    names, ops = np.unique(columns.op.numbers[counted], return_inverse=True)
    runs = columns.runs[counted]
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for at, column in enumerate((np.ones_like(runs), columns.duration_ns, columns.flops, columns.bytes)):
        values = column if at == 0 else column[counted]
        for number, total in zip(names.tolist(), grouped_totals(values, runs, ops, len(names)), strict=True):
            sums[columns.op.texts[number]][at] += total
    totals = [OpTotal(op, *(many * number for number in total)) for op, total in sums.items()]
    return sorted(totals, key=lambda t: (-t.time_ns, t.op))


def total_over_runs(values: Numbers, runs: Numbers) -> int:
    """The sum of values times runs, exact where 64 bits do not suffice."""
    return grouped_totals(values, runs, np.zeros(len(values), np.int64), 1)[0]


def grouped_totals(values: Numbers, runs: Numbers, groups: Numbers, count: int) -> list[int]:
    """By group the sum of values times runs, exact where 64 bits do not suffice."""
    if float(np.abs(values).max(initial=0)) * float(runs.max(initial=0)) * max(len(values), 1) < 2**62:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, values * runs)
        totals: list[int] = sums.tolist()
        return totals
    totals = [0] * count
    for value, times, group in zip(values.tolist(), runs.tolist(), groups.tolist(), strict=True):
        totals[group] += value * times
    return totals
