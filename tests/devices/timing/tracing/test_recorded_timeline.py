"""The trace of a real step as a timeline: each record once, of the right kind, when it happened."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from partita.devices.timing import Timeline
from partita.devices.timing.events import OCCUPYING
from partita.devices.timing.export.run_metadata import run_metadata, step_stats
from partita.devices.timing.tracing.recorded_timeline import recorded_timeline
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.formats.traces import step_stats_of
from partita.graph.protos import DeviceStepStats, NodeExecStats, StepStats
from tests.devices.timing.export.test_run_metadata import step
from tests.devices.timing.saved.examples import EXAMPLES

DATA = Path(__file__).parent / "data"
TRACES = sorted(DATA.glob("*.trace.pb"))
TASK = "/job:localhost/replica:0/task:0"
GPU, CPU = f"{TASK}/device:GPU:0", f"{TASK}/device:CPU:0"
CLOCK_NS = 1_795_385_712_000_000_000


def record(name: str, start_ns: int, took_ns: int, label: str = "", thread: int = 0) -> NodeExecStats:
    """A record of TensorFlow's, whose clock counts from 1970."""
    begin = CLOCK_NS + start_ns
    return NodeExecStats(
        node_name=name,
        timeline_label=label,
        thread_id=thread,
        all_start_micros=begin // 1000,
        all_start_nanos=begin,
        op_end_rel_micros=took_ns // 1000,
        op_end_rel_nanos=took_ns,
    )


def stats(**devices: list[NodeExecStats]) -> StepStats:
    """By short name of a group of records."""
    names = {
        "cpu": CPU,
        "gpu": GPU,
        "all": "/device:GPU:0/stream:all",
        "first": "/device:GPU:0/stream:7",
        "second": "/device:GPU:0/stream:13",
        "memcpy": "/device:GPU:0/memcpy",
    }
    groups = [DeviceStepStats(device=names[name], node_stats=records) for name, records in devices.items()]
    return StepStats(dev_stats=groups)


def kinds(timeline: Timeline) -> dict[tuple[str, str], str]:
    """The kind of each event, by stream and node."""
    return {(event.stream, event.node): event.kind for event in timeline.events}


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_trace_of_tensorflow_is_read_whole(path: Path) -> None:
    """Each record is an event, measured; computing events of a stream do not overlap: none is more than full."""
    timeline = recorded_timeline(path)
    records = [node for device in step_stats_of(path).dev_stats for node in device.node_stats]
    assert sorted(event.node for event in timeline.events) == sorted(node.node_name for node in records)
    assert {event.provenance for event in timeline.events} == {"measured"}
    assert min(event.start_ns for event in timeline.events) == 0
    for device in timeline.devices:
        for stream in timeline.streams(device):
            own = [e for e in timeline.events if (e.device, e.stream) == (device, stream) and e.kind == "compute"]
            assert all(a.end_ns <= b.start_ns for a, b in pairwise(own))
            assert timeline.busy_fraction(device, stream) <= 1
    assert (timeline.cluster, timeline.links, timeline.peak_bytes) == (None, (), {})
    assert set(timeline.columns.cause.tolist()) == {-1}


def test_the_records_of_a_gpu_are_taken_once() -> None:
    """Kernels on their streams, not in "stream:all" again; copies as copies, with their sizes; launches of kernels."""
    copy = record("x:MEMCPYHtoD", 0, 400, "MEMCPYHtoD size:4096")
    kernels = record("mm:MatMul", 500, 900), record("relu:Relu", 600, 100)
    trace = stats(
        cpu=[record("x", 0, 50, "x = Placeholder()"), record("x/_1", 60, 5, "x/_1 = _Send(x)")],
        gpu=[
            record("x/_2", 60, 300, "x/_2 = _Recv()"),
            record("mm", 400, 80, "[gpu 1MB] mm = MatMul(x/_2, w)"),
            record("relu", 490, 10, "relu = Relu(mm)"),
            record("n", 501, 1, "n = NoOp()"),
            record("call", 380, 1200, "call = PartitionedCall(x/_2)"),
        ],
        first=[copy, kernels[0]],
        second=[kernels[1]],
        all=[copy, *kernels],
        memcpy=[copy],
    )
    timeline = recorded_timeline(trace)
    assert timeline.devices == [CPU, GPU]
    assert kinds(timeline) == {
        ("compute", "x"): "compute",
        ("compute", "x/_1"): "send",
        ("compute", "x/_2"): "recv",
        ("launch", "mm"): "launch",
        ("launch", "relu"): "launch",
        ("compute", "n"): "compute",
        ("wait", "call"): "wait",
        ("memcpy", "x"): "copy",
        ("stream 7", "mm"): "compute",
        ("stream 13", "relu"): "compute",
    }
    by_op = {total.op: (total.runs, total.time_ns) for total in timeline.totals_by_op()}
    assert by_op["MatMul"] == (1, 900)
    assert timeline.transferred_bytes == 4096
    assert timeline.makespan_ns == 1580


def test_without_single_streams_all_of_them_are_one() -> None:
    """As older TensorFlow writes kernels, and Partita; a kernel whose host has no record has the op of its name."""
    timeline = recorded_timeline(stats(all=[record("mm:MatMul", 0, 5)], cpu=[record("y", 9, 1, "y = Neg(mm)")]))
    assert kinds(timeline) == {("compute", "mm"): "compute", ("compute", "y"): "compute"}
    assert timeline.find("mm").op == "MatMul"


def test_what_overlaps_on_a_thread_has_lanes_of_its_own() -> None:
    """A record without an op is that of a transfer between tasks: a thread waits for it."""
    trace = stats(
        cpu=[
            record("a", 0, 10, "a = Neg(x)", thread=1),
            record("b", 5, 10, "b = Neg(x)", thread=1),
            record("c", 10, 10, "c = Neg(x)", thread=1),
            record("d", 0, 20, "d = Neg(x)", thread=2),
            record("RecvTensor", 0, 30, "[42B] edge_1_x from /job:a to /job:b", thread=2),
        ]
    )
    assert kinds(recorded_timeline(trace)) == {
        ("thread 1", "a"): "compute",
        ("thread 1 (2)", "b"): "compute",
        ("thread 1", "c"): "compute",
        ("thread 2", "d"): "compute",
        ("thread 2", "RecvTensor"): "wait",
    }


@pytest.mark.parametrize("name", ["gpu", "machines", "collective"])
def test_what_this_package_writes_comes_back(name: str) -> None:
    """As far as a trace holds it: nodes, streams, kinds and times; and it says that nobody measured them."""
    timeline = EXAMPLES[name]()
    read = recorded_timeline(run_metadata(timeline))

    def rows(of: Timeline) -> list[tuple[object, ...]]:
        return sorted((e.device, e.stream, e.node, e.kind, e.start_ns, e.end_ns, e.op) for e in of.events)

    assert rows(read) == rows(timeline)
    assert read.makespan_ns == timeline.makespan_ns
    assert {event.provenance for event in read.events} == {"simulated"}
    assert "not measured" in read.warnings[1]


def test_a_trace_is_read_from_a_message_bytes_and_a_file(tmp_path: Path) -> None:
    """A StepStats or a RunMetadata; anything else is one clear error."""
    _, timeline = step()
    (tmp_path / "t.pb").write_bytes(run_metadata(timeline).SerializeToString())
    sources = (step_stats(timeline), run_metadata(timeline).SerializeToString(), tmp_path / "t.pb")
    assert len({recorded_timeline(source).makespan_ns for source in sources}) == 1
    with pytest.raises(InvalidArgumentError, match="neither a StepStats nor a RunMetadata"):
        recorded_timeline(b"no trace")
    with pytest.raises(NotFoundError, match="cannot be read"):
        recorded_timeline(tmp_path / "missing.pb")
    with pytest.raises(InvalidArgumentError, match="times are from 0"):
        recorded_timeline(stats(cpu=[record("a", 0, -5, "a = Neg(x)")]))


def test_occupying_kinds_alone_are_counted() -> None:
    """A launch and what waits for others are drawn, and not added up."""
    _, timeline = step()
    read = recorded_timeline(step_stats(timeline))
    totals = {total.op: total.time_ns for total in read.totals_by_op()}
    assert sum(totals.values()) == sum(e.duration_ns for e in read.events if e.kind in OCCUPYING)
    assert totals["MatMul"] == timeline.find("product").duration_ns
