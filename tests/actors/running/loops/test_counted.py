"""For: its body is called once per number, wherever its nodes are; simulated, it takes the time of these calls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.devices import cut, local_cluster
from partita.devices.timing import simulate
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph.analysis.loop_values import numbers_of_for
from partita.graph.builder import GraphBuilder
from partita.graph.gradients import gradients
from partita.graph.graphdef.importer import graph_def_to_graph
from partita.graph.protos import GraphDef, NameAttrList, RunMetadata, RunOptions
from tests.function_defs import function_of
from tests.runs import HARD_PLACEMENT
from tests.strategies import cpu


def loop(start: object, limit: object, delta: object, device: str = "") -> GraphDef:
    """y = x, to which 2 v + i is added for each number i, v the value so far; None stands for a placeholder."""
    b = GraphBuilder()
    i, value = b.placeholder("i", "int32", ()), b.placeholder("value", "float32", ())
    doubled = b.op("AddV2", value, value, device=device)
    total = b.op("AddV2", doubled, b.op("Cast", i, SrcT="int32", DstT="float32"), name="total", device=device)
    body = function_of("body", b.graph_def(), ["i:0", "value:0"], [total[0].name])
    b = GraphBuilder()
    b.function(body)
    bounds = [
        b.placeholder(name, "int32", ()) if value is None else b.constant(np.array(value, np.int32), name=name)
        for name, value in (("start", start), ("limit", limit), ("delta", delta))
    ]
    attrs = {"T": ["float32"], "body": NameAttrList(name="body")}
    b.op(
        "For",
        *bounds,
        [b.op("Neg", b.op("Neg", b.placeholder("x", "float32", ()))[0])[0]],
        name="y",
        device=cpu(0),
        attrs=attrs,
    )
    return b.graph_def()


def expected(start: int, limit: int, delta: int, x: float = 1.0) -> np.float32:
    value = np.float32(x)
    for i in numbers_of_for(start, limit, delta):
        value = np.float32(2 * value + np.float32(i))
    return value


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-3, 3), st.booleans())
async def test_the_body_gets_every_number_from_start_to_limit(start: int, limit: int, delta: int, far: bool) -> None:
    """A delta that does not lead to the limit is an error, except where there is nothing to do."""
    graph_def = loop(start, limit, delta, cpu(1) if far else "")
    async with open_session(graph_def, "cpu:2", config=HARD_PLACEMENT) as session:
        if start != limit and delta * (limit - start) <= 0:
            with pytest.raises(InvalidArgumentError, match="Invalid start/limit/delta"):
                await session.run("y:0", {"x": np.float32(1)})
        else:
            assert (await session.run("y:0", {"x": np.float32(1)}))[0] == expected(start, limit, delta)


@pytest.mark.parametrize("bounds", [(0, 5, 1), (4, -4, -3), (7, 7, 0)])
async def test_a_loop_takes_the_time_of_its_turns_on_both_clocks(bounds: tuple[int, int, int]) -> None:
    """The value-free simulation and a session on the virtual clock have one timeline."""
    cluster = local_cluster("cpu:1")
    simulated = simulate(cut(loop(*bounds), cluster, feeds=["x"], fetches=["y"]), cluster)
    async with open_session(loop(*bounds), "cpu:1", clock="virtual") as session:
        await session.run("y:0", {"x": np.float32(1)})
        ran = session.timeline()
    turns = len(numbers_of_for(*bounds))
    assert simulated.makespan_ns == ran.makespan_ns
    assert [total.runs for total in simulated.totals_by_op() if total.op == "AddV2"] == [2 * turns] * bool(turns)


def test_a_count_that_is_unknown_before_the_run_is_asked_for() -> None:
    """It can be given by the node's name."""
    cluster = local_cluster("cpu:1")
    parts = cut(loop(0, None, 1), cluster, feeds=["x", "limit"], fetches=["y"])
    with pytest.raises(InvalidArgumentError, match="--trips y=N"):
        simulate(parts, cluster)
    totals = simulate(parts, cluster, trip_counts={"y": 4}).totals_by_op()
    assert [total.runs for total in totals if total.op == "AddV2"] == [8]


def test_a_simulation_refuses_bounds_that_a_run_refuses() -> None:
    cluster = local_cluster("cpu:1")
    with pytest.raises(InvalidArgumentError, match="Invalid start/limit/delta: 0 5 -1"):
        simulate(cut(loop(0, 5, -1), cluster, feeds=["x"], fetches=["y"]), cluster)


async def test_a_trace_tells_how_often_a_body_ran() -> None:
    cluster = local_cluster("cpu:1")
    metadata = RunMetadata()
    async with open_session(loop(0, None, 2), "cpu:1") as session:
        await session.run(
            "y:0",
            {"x": np.float32(1), "limit": np.int32(7)},
            options=RunOptions(trace_level=RunOptions.FULL_TRACE),
            metadata=metadata,
        )
    parts = cut(loop(0, None, 2), cluster, feeds=["x", "limit"], fetches=["y"])
    totals = simulate(parts, cluster, trace=metadata).totals_by_op()
    assert [total.runs for total in totals if total.op == "AddV2"] == [8]


def test_no_gradient_passes_a_for() -> None:
    """As in TensorFlow, which registers none."""
    with pytest.raises(NotFoundError, match="no gradient is known for op 'For'"):
        gradients(graph_def_to_graph(loop(0, 3, 1)), ["y:0"], ["x:0"])
