"""Simulating with the trace of a real step equals simulating with what the step has shown, given by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.devices import cut, local_cluster, simulate
from partita.errors import InvalidArgumentError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.formats.trace_runs import runs_of
from partita.graph.formats.traces import step_stats_of
from partita.graph.graphdef.files import load_graph_def
from tests.devices.timing.tracing.test_facts import own_trace

DATA = Path(__file__).parent / "data"
CLUSTER = local_cluster("cpu:2")


def product() -> GraphDef:
    """y = x * w + 1 for an `x` of any number of rows, the sum on another device."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (None, 64))
    weights = b.constant(np.ones((64, 64), np.float32), name="w")
    result = b.op("MatMul", x, weights, name="product", device="/device:CPU:0")
    b.op("AddV2", result, b.constant(np.float32(1)), name="y", device="/device:CPU:1")
    return b.graph_def()


def partitions(graph_def: GraphDef, feeds: dict[str, Any] | None = None) -> Any:
    return cut(graph_def, CLUSTER, feeds=list(feeds or {"x:0": 0}), fetches=["y:0"])


async def test_a_trace_tells_shapes_that_the_graph_does_not() -> None:
    """The timeline is the one of a feed of that shape."""
    graph_def = product()
    parts = partitions(graph_def)
    with pytest.raises(InvalidArgumentError, match="--shape"):
        simulate(parts, CLUSTER)
    trace = await own_trace(graph_def, {"x:0": np.ones((32, 64), np.float32)}, "cpu:2")
    traced, given = simulate(parts, CLUSTER, trace=trace), simulate(parts, CLUSTER, feeds={"x:0": (32, 64)})
    assert traced.events == given.events
    assert traced.flops == 2 * 32 * 64 * 64 + 32 * 64


def test_a_trace_of_tensorflow_tells_shapes_too() -> None:
    graph_def = load_graph_def(DATA / "function.graph.pb")
    parts = cut(graph_def, CLUSTER, feeds=["x:0"], fetches=["y:0"], inline=True)
    traced = simulate(parts, CLUSTER, trace=DATA / "function.trace.pb")
    assert traced.events == simulate(parts, CLUSTER, feeds={"x:0": (2, 3)}).events


@pytest.mark.parametrize("name", ["conditional", "conditional_v2"])
def test_a_trace_tells_which_branch_is_taken(name: str) -> None:
    """The other one costs nothing."""
    graph_def, feeds = (
        load_graph_def(DATA / f"{name}.graph.pb"),
        {"p:0": np.array(True), "x:0": np.ones((2, 3), np.float32)},
    )
    parts = cut(graph_def, CLUSTER, feeds=list(feeds), fetches=["y:0"])
    traced = simulate(parts, CLUSTER, trace=DATA / f"{name}.trace.pb")
    assert traced.events == simulate(parts, CLUSTER, feeds=feeds).events
    assert traced.flops == 2 * 2 * 3 * 3


async def test_what_the_caller_gives_comes_before_the_trace() -> None:
    """A trace of other feeds contradicts what follows from them."""
    graph_def = product()
    trace = await own_trace(graph_def, {"x:0": np.ones((32, 64), np.float32)}, "cpu:2")
    with pytest.raises(InvalidArgumentError, match=r"of another graph or of other feeds: there 'product:0'"):
        simulate(partitions(graph_def), CLUSTER, trace=trace, feeds={"x:0": (8, 64)})


async def test_measured_times_take_the_place_of_those_of_the_model() -> None:
    """Operations and bytes stay; without `trace_times` the trace changes no time."""
    graph_def = product()
    parts = partitions(graph_def)
    trace = await own_trace(graph_def, {"x:0": np.ones((32, 64), np.float32)}, "cpu:2")
    measured = {run.node: run.duration_ns for run in runs_of(step_stats_of(trace))}
    modelled, timed = simulate(parts, CLUSTER, trace=trace), simulate(parts, CLUSTER, trace=trace, trace_times=True)
    for node in ("product", "y"):
        event = timed.find(node)
        assert (event.duration_ns, event.provenance) == (measured[node], "measured")
        assert event.flops == modelled.find(node).flops
    assert modelled.find("product").provenance == "roofline"
