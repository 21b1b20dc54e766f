"""Two runs side by side, aligned by the names of nodes.

    node     first     second
    mm       30 us     20 us     faster by 10 us
    relu      2 us      2 us     the same
    loss      1 us               vanished: the second run has no such node
    tail                4 us     appeared

A node has all its runs and iterations together, on all devices: the time of its computing, of its part in collectives,
and of copies, which have the name of their tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....devices.timing import Timeline
from ....devices.timing.events import OCCUPYING, TextColumn
from ....devices.timing.totals import grouped_totals
from ....graph.arrays import Numbers
from .names import PageNames
from .page_data import Document

MOST_ROWS = 2000
"""nodes of a page, those that changed most; totals are of all"""


class NodeTime(NamedTuple):
    """All runs of a node together; the op and the device are those of the first."""

    op: str
    device: str
    time_ns: int
    runs: int


def comparison(first: Timeline, second: Timeline, names: tuple[str, str]) -> Document:
    """The comparison of two runs of those names."""
    a, b = node_times(first), node_times(second)
    changes = {node: _ns(b.get(node)) - _ns(a.get(node)) for node in [*a, *(node for node in b if node not in a)]}
    changed = [node for node, change in changes.items() if change or node not in a or node not in b]
    rows = sorted(changed, key=lambda node: (-abs(changes[node]), node))
    return {
        "names": list(names),
        "makespan_ns": [first.makespan_ns, second.makespan_ns],
        "rows": [_row(node, a.get(node), b.get(node)) for node in rows[:MOST_ROWS]],
        "left_out": max(0, len(rows) - MOST_ROWS),
        "totals": _totals(a, b, changes),
        "ops": _ops(a.values(), b.values()),
    }


def node_times(timeline: Timeline) -> dict[str, NodeTime]:
    """By node the time that it takes streams and links, in order of first appearance."""
    columns, names = timeline.columns, PageNames(timeline)
    chosen = np.flatnonzero(columns.of_kind(*OCCUPYING))
    node, first, group = _same_text(columns.node, chosen)
    runs = columns.runs[chosen]
    times = grouped_totals(columns.duration_ns[chosen], runs, group, len(node))
    counts = grouped_totals(runs, np.ones_like(runs), group, len(node))
    of_first = zip(columns.op.in_order(chosen[first]), columns.device.in_order(chosen[first]), strict=True)
    rows = zip(node, of_first, times, counts, strict=True)
    return {name: NodeTime(op, names.short(device), time_ns, count) for name, (op, device), time_ns, count in rows}


def _same_text(column: TextColumn, chosen: Numbers) -> tuple[list[str], Numbers, Numbers]:
    """The texts of the chosen events, the first event of each, and by event the number of its text."""
    numbers, group = np.unique(column.numbers[chosen], return_inverse=True)
    texts = [column.texts[number] for number in numbers.tolist()]
    common = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    joined = np.array([common[text] for text in texts], np.int64)[group]  # a text may have several numbers
    earliest = np.full(len(common), len(chosen), np.int64)
    np.minimum.at(earliest, joined, np.arange(len(chosen)))
    return list(common), earliest, joined


def _ns(time: NodeTime | None) -> int:
    return 0 if time is None else time.time_ns


def _row(node: str, a: NodeTime | None, b: NodeTime | None) -> Document:
    known = a or b
    assert known is not None  # a row has at least one run
    return {
        "node": node,
        "op": known.op,
        "a_ns": None if a is None else a.time_ns,
        "b_ns": None if b is None else b.time_ns,
        "a_runs": 0 if a is None else a.runs,
        "b_runs": 0 if b is None else b.runs,
        "a_device": "" if a is None else a.device,
        "b_device": "" if b is None else b.device,
    }


def _totals(a: Mapping[str, NodeTime], b: Mapping[str, NodeTime], changes: Mapping[str, int]) -> Document:
    """Sums over all nodes; slower - faster + appeared - vanished is the difference of all times."""
    of_both = [change for node, change in changes.items() if node in a and node in b]
    return {
        "slower_ns": sum(change for change in of_both if change > 0),
        "faster_ns": -sum(change for change in of_both if change < 0),
        "appeared_ns": sum(change for node, change in changes.items() if node not in a),
        "vanished_ns": -sum(change for node, change in changes.items() if node not in b),
        "same": sum(not change for change in of_both),
    }


def _ops(a: Iterable[NodeTime], b: Iterable[NodeTime]) -> list[Document]:
    """Times by op, those that changed most first."""
    sums: dict[str, list[int]] = {}
    for side, times in enumerate((a, b)):
        for time in times:
            sums.setdefault(time.op, [0, 0])[side] += time.time_ns
    order: Sequence[str] = sorted(sums, key=lambda op: (-abs(sums[op][1] - sums[op][0]), op))
    return [{"op": op, "a_ns": sums[op][0], "b_ns": sums[op][1]} for op in order]
