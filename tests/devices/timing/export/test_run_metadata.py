"""RunMetadata of a simulated step, laid out as the tools of TensorFlow read it."""

from __future__ import annotations

from partita.devices import cut, local_cluster, simulate
from partita.devices.timing import Timeline
from partita.devices.timing.costs.measured import MeasuredSource
from partita.devices.timing.export import run_metadata, step_stats
from partita.graph import Graph, GraphBuilder
from partita.graph.protos import StepStats
from partita.graph.structured import while_loop

GPU, CPU = (f"/job:localhost/replica:0/task:0/device:{kind}:0" for kind in ("GPU", "CPU"))
CLUSTER = local_cluster("cpu:1,gpu:1")


def step(trips: int = 1) -> tuple[dict[str, Graph], Timeline]:
    """A product and a Relu on a GPU, both in a loop where there are several trips, and a Neg on the CPU."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (64, 64))
    with b.device("/device:GPU:0"):
        y = b.op("Relu", b.op("MatMul", x, x, name="product"), name="relu")[0]
    if trips > 1:
        with b.device("/device:CPU:0"):
            _, y = while_loop(
                b,
                lambda i, _: b.op("Less", i, trips),
                lambda i, v: (b.op("AddV2", i, 1), b.op("Exp", v, name="exp", device="/device:GPU:0")),
                [b.constant(0), y],
            )
    b.op("Neg", y, name="y", device="/device:CPU:0")
    parts = cut(b.graph_def(), CLUSTER, feeds=["x"], fetches=["y"])
    return parts, simulate(parts, CLUSTER, feeds={"x": (64, 64)})


def totals(stats: StepStats, device: str) -> dict[str, int]:
    """Nanoseconds by node of one device."""
    (found,) = [record for record in stats.dev_stats if record.device == device]
    return {node.node_name.partition(":")[0]: node.all_end_rel_nanos for node in found.node_stats}


def test_kernels_are_on_the_stream_and_launches_on_the_device() -> None:
    """tfprof counts ".../stream:all" as time of the accelerator, and all other devices as time of a CPU."""
    _, timeline = step()
    stats = step_stats(timeline)
    assert {d.device.removeprefix(GPU) for d in stats.dev_stats if d.device.startswith(GPU)} == {
        "",
        "/link",
        "/stream:all",
    }
    for device, kind in ((GPU, "launch"), (f"{GPU}/stream:all", "compute")):
        for node in ("product", "relu"):
            (event,) = [e for e in timeline.events if (e.node, e.kind) == (node, kind)]
            assert totals(stats, device)[node] == event.duration_ns > 0
    assert totals(stats, CPU)["y"] == timeline.find("y").duration_ns
    assert "product" not in totals(stats, CPU)


def test_nothing_starts_at_zero() -> None:
    """Which tools take for a node that has no start, and leave out; each event is written once."""
    _, timeline = step()
    nodes = [node for device in step_stats(timeline).dev_stats for node in device.node_stats]
    assert min(node.all_start_micros for node in nodes) == 1
    assert sorted(node.all_start_nanos - 1000 for node in nodes) == sorted(e.start_ns for e in timeline.events)


def test_our_own_importer_reads_the_times_back() -> None:
    """Also of a loop, whose runs share the time of its kernels: a step of these times is the step they are from."""
    for trips in (1, 5):
        parts, timeline = step(trips)
        measured = MeasuredSource.from_step_stats(run_metadata(timeline), parts, CLUSTER)
        again = simulate(parts, CLUSTER, feeds={"x": (64, 64)}, cost_source=measured)
        ours, theirs = ({t.op: t.time_ns for t in line.totals_by_op()} for line in (timeline, again))
        assert ours["MatMul"] == theirs["MatMul"]
        assert ours["Neg"] == theirs["Neg"]
        if trips > 1:
            assert ours["Exp"] == theirs["Exp"]
