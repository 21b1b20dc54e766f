"""The critical path of a step for its page: its time by op, and event by event what each waited for.

a MatMul of 4 us, then the copy of its output, which ends at 9 us:
    by op    [{"op": "MatMul", "events": 1, "ns": 4000}, {"op": "copy", "events": 1, "ns": 5000}]

An event takes until the next one of the path starts, so that the times add up to the step.
"""

from __future__ import annotations

import numpy as np

from ....devices.timing import Timeline
from ....devices.timing.events import KINDS, EventType
from ....graph.arrays import Numbers
from .names import PageNames
from .page_data import Document

MOST_EVENTS = 2000
"""events of a path that a page has one by one, those that take longest"""
_CAUSES: dict[EventType, str] = {
    "compute": "op before it",
    "launch": "launch of its kernel",
    "wait": "end of a wait",
    "copy": "transfer before it",
    "send": "send before it",
    "recv": "arrival of a tensor",
    "collective": "collective before it",
}


def path_record(timeline: Timeline, names: PageNames, path: Numbers) -> Document:
    """By op, and the events that take longest in the order of the path."""
    spent_ns = np.diff(timeline.columns.start_ns[path], append=timeline.makespan_ns)
    longest = np.sort(np.argsort(-spent_ns, kind="stable")[:MOST_EVENTS])
    return {
        "ops": _by_op(timeline, path, spent_ns),
        "events": [_event(timeline, names, int(path[place]), int(spent_ns[place])) for place in longest],
        "left_out": len(path) - len(longest),
    }


def _by_op(timeline: Timeline, path: Numbers, spent_ns: Numbers) -> list[Document]:
    columns = timeline.columns
    ops: dict[str, Document] = {}
    for op, number, ns in zip(columns.op.in_order(path), columns.kind[path].tolist(), spent_ns.tolist(), strict=True):
        name = op or KINDS[number]
        row = ops.setdefault(name, {"op": name, "events": 0, "ns": 0})
        row["events"] += 1
        row["ns"] += ns
    return list(ops.values())


def _event(timeline: Timeline, names: PageNames, number: int, ns: int) -> Document:
    columns = timeline.columns
    cause = int(columns.cause[number])
    waited = "start of the step"
    if cause >= 0:
        is_elsewhere = columns.device[cause] != columns.device[number]
        elsewhere = f" on {names.short(columns.device[cause])}" if is_elsewhere else ""
        waited = f"{_CAUSES[KINDS[columns.kind[cause]]]}{elsewhere}"
    return {
        "number": number,
        "node": columns.node[number],
        "op": columns.op[number] or KINDS[columns.kind[number]],
        "device": names.short(columns.device[number]),
        "start_ns": int(columns.start_ns[number]),
        "ns": ns,
        "waited_for": waited,
    }
