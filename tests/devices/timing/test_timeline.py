"""The queries on a timeline written by hand, and its file formats."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from partita.devices.timing import Timeline, TimelineEvent, start_times
from partita.devices.timing.export import chrome_trace, run_metadata, write_chrome_trace, write_csv
from partita.devices.timing.export.csv import to_csv
from partita.errors import InvalidArgumentError
from partita.graph import RunMetadata

A, B = "/device:CPU:0", "/device:CPU:1"
EVENTS = (
    TimelineEvent(A, "compute", "x", "Const", "compute", 0, 0, provenance="free"),
    TimelineEvent(A, "compute", "a", "Neg", "compute", 0, 4000, bytes=80, flops=10, cause=0),
    TimelineEvent(A, "compute", "a/send", "_Send", "send", 4000, 4000, provenance="free", cause=1),
    TimelineEvent(A, "wire to B", "edge_1_a", "copy", "copy", 4000, 6500, bytes=40, provenance="link", cause=2),
    TimelineEvent(B, "compute", "a/recv", "_Recv", "recv", 6500, 6500, provenance="free", cause=3),
    TimelineEvent(B, "compute", "b", "Neg", "compute", 6500, 10_000, bytes=80, flops=10, cause=4),
    TimelineEvent(A, "compute", "c", "Mul", "compute", 4000, 5000, bytes=120, flops=10, cause=1),
)
TIMELINE = Timeline(
    EVENTS, warnings=["a guess"], peak_bytes={(A, "device"): 2048, (A, "host"): 7}, dependency_bound_ns=10_000
)


def test_queries() -> None:
    """Makespan, loads, memory and totals."""
    assert TIMELINE.makespan_ns == 10_000
    assert TIMELINE.devices == [A, B]
    assert TIMELINE.streams(A) == ["compute", "wire to B"]
    assert (TIMELINE.busy_ns(A), TIMELINE.busy_ns(A, "wire to B"), TIMELINE.busy_ns("nobody")) == (5000, 2500, 0)
    assert TIMELINE.busy_fraction(B) == 0.35
    assert (TIMELINE.peak_memory_bytes(A), TIMELINE.peak_memory_bytes(A, "host")) == (2048, 7)
    assert TIMELINE.peak_memory_bytes(B) == 0
    assert (TIMELINE.flops, TIMELINE.transferred_bytes) == (30, 40)
    assert TIMELINE.find("b").start_ns == 6500
    assert [(t.op, t.runs, t.time_ns) for t in TIMELINE.totals_by_op()] == [
        ("Neg", 2, 7500),
        ("copy", 1, 2500),
        ("Mul", 1, 1000),
        ("Const", 1, 0),
    ]


def test_critical_path() -> None:
    """The causes of the last end; their durations fill the makespan."""
    path = TIMELINE.critical_path()
    assert [event.node for event in path] == ["x", "a", "a/send", "edge_1_a", "a/recv", "b"]
    assert sum(event.duration_ns for event in path) == TIMELINE.makespan_ns


def test_start_times_are_whole_microseconds() -> None:
    """Of nodes, not of transfers."""
    assert start_times(TIMELINE) == {"x": 0, "a": 0, "a/send": 4, "a/recv": 6, "b": 6, "c": 4}


def test_nothing_is_no_result() -> None:
    """No events, and events of 0 ns, are errors."""
    with pytest.raises(InvalidArgumentError, match="0 nodes executed"):
        Timeline([])
    with pytest.raises(InvalidArgumentError, match="all 1 events are free"):
        Timeline(EVENTS[:1])
    with pytest.raises(InvalidArgumentError, match="no event of a node 'z'"):
        TIMELINE.find("z")


def test_render() -> None:
    """A bar per stream that was ever busy."""
    assert TIMELINE.render(20) == (
        "makespan 10.000 us, 7 events\n"
        "/device:CPU:0  peak memory 2.00 KiB\n"
        "  |██████████          |  50.0 %  compute\n"
        "  |        █████       |  25.0 %  wire to B\n"
        "/device:CPU:1  peak memory 0 B\n"
        "  |             ███████|  35.0 %  compute\n"
        "note: a guess"
    )


def test_chrome_trace(tmp_path: Path) -> None:
    """Valid JSON; complete events for events with time; an arrow from copy to recv; a name for every row."""
    write_chrome_trace(TIMELINE, tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == chrome_trace(TIMELINE)
    events = trace["traceEvents"]
    complete = {e["name"]: (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert complete == {"a": (0.0, 4.0), "edge_1_a": (4.0, 2.5), "b": (6.5, 3.5), "c": (4.0, 1.0)}
    assert [e["name"] for e in events if e["ph"] == "i"] == ["x", "a/send", "a/recv"]
    assert [(e["ph"], e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] in "sf"] == [
        ("s", 1, 2, 4.0),
        ("f", 2, 1, 6.5),
    ]
    rows = {(e["pid"], e["tid"]) for e in events if e["ph"] != "M"}
    assert rows <= {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    other = {"makespan_ns": 10_000, "times": "assumed, not calibrated", "models": {}, "warnings": ["a guess"]}
    assert trace["otherData"] == other


def test_run_metadata() -> None:
    """Equal after serialising; times exact in nanoseconds and cut in microseconds."""
    stats = RunMetadata.FromString(run_metadata(TIMELINE).SerializeToString()).step_stats
    assert [device.device for device in stats.dev_stats] == [A, f"{A}/link", B]
    (copy,) = stats.dev_stats[1].node_stats
    assert (copy.node_name, copy.all_start_micros, copy.all_end_rel_micros) == ("edge_1_a", 5, 2)
    assert (copy.all_start_nanos, copy.all_end_rel_nanos) == (5000, 2500)
    assert all(node.all_start_micros > 0 for device in stats.dev_stats for node in device.node_stats)
    assert [node.node_name for node in stats.dev_stats[0].node_stats] == ["x", "a", "a/send", "c"]


def test_csv(tmp_path: Path) -> None:
    """Equal when read back, with units in the header."""
    write_csv(TIMELINE, tmp_path / "events.csv")
    text = (tmp_path / "events.csv").read_text()
    assert text == to_csv(TIMELINE)
    rows = list(csv.DictReader(StringIO(text)))
    assert len(rows) == len(EVENTS)
    assert rows[3]["start_ns"] == "4000"
    assert rows[3]["provenance"] == "link"
