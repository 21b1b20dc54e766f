"""Law: a simulation that plays equal iterations once gives what one gives that plays them all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices import Cluster, cut, local_cluster, parse_cluster
from partita.devices.timing import Timeline, simulate
from partita.devices.timing.playing import folding
from partita.devices.timing.playing.folding import Folding
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.structured import while_loop
from tests.devices.timing.programs import Loop, Op, Program, Sequence, Writer, programs
from tests.devices.timing.steps import cluster


def folded_and_not(graph_def: GraphDef, hardware: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[Timeline]:
    """The step twice: folded, however short its loops are, and with every iteration played."""
    parts = cut(graph_def, hardware, feeds=["x"], fetches=["y"], allow_soft_placement=True)
    timelines = []
    with monkeypatch.context() as patch:
        patch.setattr(folding, "FEWEST", 3)
        timelines.append(simulate(parts, hardware))
        patch.setattr(Folding, "check", lambda seen: seen.begun.clear())
        timelines.append(simulate(parts, hardware))
    return timelines


def summary(timeline: Timeline) -> list[object]:
    """What must be equal."""
    busy = [(d, s, timeline.busy_ns(d, s)) for d in timeline.devices for s in timeline.streams(d)]
    totals = [tuple(total) for total in timeline.totals_by_op()]
    links = sorted({event.provenance for event in timeline.events if event.kind == "copy"})
    loads = [(link, timeline.link_loads(link)) for link in links]
    return [timeline.makespan_ns, timeline.flops, timeline.peak_bytes, sorted(busy), totals, loads]


@given(st.integers(5, 60), programs(), st.sampled_from(["While", "For", "v1"]), st.integers(0, 1))
def test_a_folded_step_is_the_unfolded_one(count: int, body: Program, way: str, gpus: int) -> None:
    """Makespan, peaks, busy streams, totals per op, loads of links, on a CPU or a GPU, with loops in the loop."""
    program = Sequence((Op("Neg"), Loop(count, Sequence((body, Op("MatMul"))), way), Op("Neg")))
    hardware = local_cluster("gpu:1") if gpus else cluster(1, overhead_ns=3)
    with pytest.MonkeyPatch.context() as monkeypatch:
        folded, played = folded_and_not(Writer().graph_def(program), hardware, monkeypatch)
    assert summary(folded) == summary(played)
    assert int(np.sum(folded.columns.runs)) == len(played.columns)


def long_loop(count: int, parallel_iterations: int = 10) -> GraphDef:
    """x x x ..., multiplied `count` times."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (8, 8))
    _, y = while_loop(
        b,
        lambda i, _: b.op("Less", i, count),
        lambda i, value: (i + 1, b.op("MatMul", value, value)[0]),
        [0, x],
        name="w",
        parallel_iterations=parallel_iterations,
    )
    b.identity(y, name="y")
    return b.graph_def()


@pytest.mark.parametrize("parallel_iterations", [1, 10])
def test_a_long_loop_is_a_block(parallel_iterations: int) -> None:
    """100,000 iterations are a few events, of which a block has the iterations of all but a few."""
    parts = cut(long_loop(100_000, parallel_iterations), "cpu:1", feeds=["x"], fetches=["y"])
    timeline = simulate(parts, "cpu:1")
    assert len(timeline.columns) < 500
    products = [event for event in timeline.events if event.op == "MatMul"]
    assert sum(event.runs for event in products) == 100_000
    block = max(products, key=lambda event: event.runs)
    first, last = block.iteration.removeprefix("w/while_context:").split("-")
    assert int(last) - int(first) + 1 == block.runs
    assert sum(event.duration_ns * event.runs for event in timeline.critical_path()) == timeline.makespan_ns


def test_a_loop_over_devices_of_one_task_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tensors are shared, not copied."""
    graph_def = long_loop(300)
    next(node for node in graph_def.node if node.op == "MatMul").device = "/device:CPU:1"
    folded, played = folded_and_not(graph_def, local_cluster("cpu:2"), monkeypatch)
    assert summary(folded) == summary(played)
    assert len(folded.columns) < len(played.columns) / 2


def test_a_loop_on_a_slow_device_is_played() -> None:
    """Its iterations are equal but for the time at which they run: those in the window take twice as long."""
    parts = cut(long_loop(300), "cpu:1", feeds=["x"], fetches=["y"])
    plain = simulate(parts, "cpu:1")
    window = f'from = "{plain.makespan_ns // 2} ns"\nto = "{plain.makespan_ns // 2 + 1000} ns"'
    slow_cluster = f'[[device]]\nspec = "generic-cpu"\n[[slow]]\ndevice = "cpu:0"\nfactor = 2\n{window}'
    slow = simulate(parts, parse_cluster(slow_cluster))
    assert slow.makespan_ns == plain.makespan_ns + 500
    assert slow.flops == plain.flops
