"""Two runs side by side: every node is once in the comparison, and the sums are those of the timelines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given

from partita.devices.timing import Timeline, TimelineEvent
from partita.scenarios.report.page import comparison as module
from partita.scenarios.report.page.comparison import comparison, node_times
from tests.devices.timing.saved.drawn import timelines

A, B = ("/job:w/replica:0/task:0/device:GPU:0", "/job:w/replica:0/task:0/device:CPU:0")


def event(node: str, took_ns: int, **other: Any) -> TimelineEvent:  # Any: fields differ in type
    """An op of the GPU."""
    return TimelineEvent(A, "compute", node, "MatMul", "compute", 0, took_ns)._replace(**other)


def times(timeline: Timeline) -> Counter[str]:
    """What the events say, one by one."""
    sums: Counter[str] = Counter()
    for each in timeline.events:
        if each.occupies:
            sums[each.node] += each.duration_ns * each.runs
    return sums


@given(timelines(), timelines())
def test_the_totals_are_the_difference_of_all_times(first: Timeline, second: Timeline) -> None:
    """What became slower less what became faster, with what appeared less what vanished."""
    a, b = times(first), times(second)
    document = comparison(first, second, ("a", "b"))
    totals = document["totals"]
    assert totals["slower_ns"] - totals["faster_ns"] + totals["appeared_ns"] - totals["vanished_ns"] == (
        b.total() - a.total()
    )
    assert totals["same"] + len(document["rows"]) == len(a.keys() | b.keys())
    for row in document["rows"]:
        node = row["node"]
        assert (row["a_ns"], row["b_ns"]) == (a.get(node), b.get(node))
        assert row["a_ns"] != row["b_ns"]
    changes = [abs((row["b_ns"] or 0) - (row["a_ns"] or 0)) for row in document["rows"]]
    assert changes == sorted(changes, reverse=True)
    assert sum(op["b_ns"] - op["a_ns"] for op in document["ops"]) == b.total() - a.total()


@given(timelines())
def test_a_run_beside_itself_has_not_changed(timeline: Timeline) -> None:
    """No row, whatever its names."""
    document = comparison(timeline, timeline, ("a", "a"))
    assert document["rows"] == []
    assert document["totals"]["same"] == len(times(timeline))


def test_what_became_slower_what_appeared_and_what_vanished() -> None:
    """Also on another device; runs and iterations of a node count together."""
    first = Timeline([event("slow", 10, runs=3), event("gone", 5), event("moved", 7), event("same", 1)])
    second = Timeline(
        [
            event("slow", 10, runs=4, iteration="w:0-3"),
            event("slow", 5, iteration="w:4"),
            event("moved", 9, device=B),
            event("new", 2),
            event("same", 1),
            event("slow", 100, kind="launch"),
        ]
    )
    document = comparison(first, second, ("a", "b"))
    rows = {row["node"]: row for row in document["rows"]}
    assert list(rows) == ["slow", "gone", "moved", "new"]
    assert (rows["slow"]["a_ns"], rows["slow"]["b_ns"]) == (30, 45)
    assert (rows["slow"]["a_runs"], rows["slow"]["b_runs"]) == (3, 5)
    assert (rows["moved"]["a_device"], rows["moved"]["b_device"]) == ("gpu:0", "cpu:0")
    assert (rows["gone"]["b_ns"], rows["gone"]["b_device"], rows["new"]["a_ns"]) == (None, "", None)
    assert document["totals"] == {"slower_ns": 17, "faster_ns": 0, "appeared_ns": 2, "vanished_ns": 5, "same": 1}


def test_of_very_many_changes_the_largest_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the totals are of all."""
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    first, second = (Timeline([event(f"n{n}", 10 * k + n) for n in range(1, 5)]) for k in (1, 2))
    document = comparison(first, second, ("a", "b"))
    assert (len(document["rows"]), document["left_out"]) == (2, 2)
    assert document["totals"]["slower_ns"] == 40


def test_a_node_has_its_first_op_and_device() -> None:
    """Of several events with one name."""
    timeline = Timeline([event("a", 1), event("a", 2, op="Neg", device=B)])
    assert node_times(timeline)["a"] == ("MatMul", "gpu:0", 3, 2)
