"""StepStats of real steps: shapes, names and iterations of nodes in loops, called functions and interpreted graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import RunMetadata, RunOptions, open_session
from partita.graph.builder import GraphBuilder
from partita.graph.protos import FunctionDef, GraphDef, NodeExecStats
from tests.actors.running.loops.test_distributed_loops import feeds, negating, shifting
from tests.actors.running.test_calls import add_on, below, call, named, recursive
from tests.function_defs import library_of
from tests.strategies import cpu

FULL = RunOptions(trace_level=RunOptions.FULL_TRACE)


async def traced(
    graph_def: GraphDef, fed: dict[str, Any], devices: str = "cpu:2", fetch: str = "y:0"
) -> list[NodeExecStats]:
    """The records of a step of all devices."""
    metadata = RunMetadata()
    async with open_session(graph_def, devices) as session:
        plain = await session.run(fetch, fed)
        np.testing.assert_array_equal(await session.run(fetch, fed, options=FULL, metadata=metadata), plain)
    return [stats for device in metadata.step_stats.dev_stats for stats in device.node_stats]


def labels(stats: list[NodeExecStats], node: str) -> list[str]:
    return [record.timeline_label for record in stats if record.node_name == node]


def shapes(stats: list[NodeExecStats], node: str) -> list[list[int]]:
    """The shapes of output 0 of a node, run by run."""
    return [
        [dim.size for dim in record.output[0].tensor_description.shape.dim]
        for record in stats
        if record.node_name == node
    ]


def choosing(op: str, *functions: FunctionDef, **attrs: Any) -> GraphDef:
    """y = op(x), for an op that calls functions; a predicate `p` comes first unless it is a While."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    first = [] if op == "While" else [b.placeholder("p", "bool", (), device=cpu(0))]
    b.op(op, *first, [x], name="y", device=cpu(0), attrs=attrs)
    graph_def = b.graph_def()
    graph_def.library.CopyFrom(library_of(*functions))
    return graph_def


@pytest.mark.parametrize("where", [0, 1])
async def test_nodes_in_loops_have_their_iteration_and_their_shapes(where: int) -> None:
    """The condition runs once more than the body; on one device and over two."""
    stats = await traced(negating(where), feeds(3))
    assert labels(stats, "Neg") == [f"Neg = Neg @ loop:{number}" for number in range(3)]
    assert labels(stats, "LoopCond") == [f"LoopCond = LoopCond @ loop:{number}" for number in range(4)]
    assert shapes(stats, "Neg") == [list(np.shape(feeds(3)["x"]))] * 3


async def test_iterations_of_interpreted_graphs_are_recorded_too() -> None:
    """3, 6, 12, 24 and 48: the loop begins five times."""
    stats = await traced(shifting(0), {"x": 3.0, "n": 40.0})
    assert labels(stats, "LoopCond") == [f"LoopCond = LoopCond @ f:{number}" for number in range(5)]
    assert shapes(stats, "AddV2") == [[]] * 4
    assert labels(stats, "y") == ["y = Exit @ f:4"]


@pytest.mark.parametrize("devices", [[""], [cpu(1), ""]])
async def test_nodes_of_functions_are_recorded_under_the_name_of_the_call(devices: list[str]) -> None:
    """Of a short function, which elsewhere runs as one instruction, and of one on two devices."""
    stats = await traced(call(add_on(devices)), {"x": 1.0})
    assert labels(stats, "y") == ["y = StatefulPartitionedCall calls add_on"]
    assert labels(stats, "y/add0") == ["y/add0 = AddV2"]
    assert shapes(stats, "y/a0") == shapes(stats, "y/add0") == [[]]


async def test_a_while_says_how_often_it_called_its_functions() -> None:
    loop = choosing("While", below(3.0), add_on([""]), T=["float32"], cond=named("below"), body=named("add_on"))
    stats = await traced(loop, {"x": 0.5})
    assert labels(stats, "y") == ["y = While calls below x4, add_on x3"]
    assert labels(stats, "y/add0") == [f"y/add0 = AddV2 @ y:{number}" for number in range(3)]
    assert labels(stats, "y/Less") == [f"y/Less = Less @ y:{number}" for number in range(4)]


@pytest.mark.parametrize("taken", [True, False])
async def test_a_conditional_says_which_branch_it_took(taken: bool) -> None:
    branches = {"then_branch": named("add_on"), "else_branch": named("below")}
    types = {"Tin": ["float32"], "Tout": ["float32"]}
    other = add_on(["", ""])
    other.signature.name = "below"
    stats = await traced(choosing("If", add_on([""]), other, **types, **branches), {"x": 0.5, "p": taken})
    assert labels(stats, "y") == [f"y = If calls {'add_on' if taken else 'below'}"]
    assert bool(labels(stats, "y/add1")) != taken


async def test_calls_in_calls_have_the_path_of_both() -> None:
    """Each recursive call has names of its own."""
    stats = await traced(call(*recursive(1.0), name="down"), {"x": 2.5})
    inner = "y/if/StatefulPartitionedCall"
    assert labels(stats, f"{inner}/if") == [f"{inner}/if = If calls again"]
    assert labels(stats, f"{inner}/if/StatefulPartitionedCall/if/Identity")


async def test_times_are_whole_in_both_units() -> None:
    """A started microsecond counts as a whole one."""
    for record in await traced(negating(1), feeds(2)):
        assert record.all_start_micros == record.all_start_nanos // 1000 == record.scheduled_nanos // 1000
        assert record.op_start_rel_nanos == 0 < record.op_end_rel_nanos == record.all_end_rel_nanos
        assert record.op_end_rel_micros == -(-record.op_end_rel_nanos // 1000)
