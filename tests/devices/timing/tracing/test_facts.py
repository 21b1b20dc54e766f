"""What traces tell of their graphs: those of TensorFlow in `data`, which `tools/make_traces.py` wrote, and our own."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import RunMetadata, RunOptions, open_session
from partita.devices import cut, local_cluster
from partita.devices.timing.tracing.coverage import Coverage, check_coverage
from partita.devices.timing.tracing.facts import TraceFacts, read_trace
from partita.devices.timing.tracing.turns import by_turn
from partita.errors import InvalidArgumentError
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.builder import GraphBuilder
from partita.graph.graphdef.files import load_graph_def
from partita.graph.protos import GraphDef, NodeExecStats, StepStats
from tests.actors.running.test_calls import add_on, named
from tests.function_defs import library_of

DATA = Path(__file__).parent / "data"
X = np.ones((2, 3), np.float32)
FEEDS: dict[str, dict[str, Any]] = {
    "loop": {"x:0": X, "n:0": 5},
    "loop_v2": {"x:0": X, "n:0": 5},
    "stacks": {"x:0": X, "n:0": 5},
    "nested": {"x:0": X, "n:0": 3},
    "conditional": {"x:0": X, "p:0": True},
    "conditional_v2": {"x:0": X, "p:0": True},
    "function": {"x:0": X},
    "control_in_function": {"x:0": X, "n:0": 3},
    "function_called": {"x:0": X},
}
EXPECTED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "loop": ({"w/while_context": 5}, {}, "w/mm"),
    "loop_v2": ({"w": 5}, {}, "w/body/_1/mm_0"),
    "stacks": ({"w/while_context": 5, "gradients/w/while_context": 5}, {}, "w/mm"),
    "nested": ({"outer/while_context": 3, "outer/inner/while_context": [1, 2, 3]}, {}, "outer/inner/mm"),
    "conditional": ({}, {"p": 1, "c/pred_id": 1}, "c/mm"),
    "conditional_v2": ({}, {"c": 1, "p": 1}, "c/then/_0/mm_0"),
    "function": ({}, {}, "PartitionedCall/inner"),
    "control_in_function": ({"PartitionedCall/w": 3}, {"PartitionedCall/c": 1}, "PartitionedCall/w/body/_?/mm"),
    "function_called": ({}, {}, "PartitionedCall/inner"),
}


def graph_of(name: str) -> GraphDef:
    return load_graph_def(DATA / f"{name}.graph.pb")


def joined(graph_def: GraphDef, feeds: dict[str, Any], devices: str = "cpu:1") -> JoinedGraph:
    return JoinedGraph(cut(graph_def, local_cluster(devices), feeds=list(feeds), fetches=["y:0"]))


async def own_trace(graph_def: GraphDef, feeds: dict[str, Any], devices: str = "cpu:1") -> RunMetadata:
    metadata = RunMetadata()
    async with open_session(graph_def, devices) as session:
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        await session.run("y:0", feeds, options=options, metadata=metadata)
    return metadata


def product_of(name: str, facts: TraceFacts) -> str:
    """The matrix product; the number that lowering counts in its name is not the same everywhere."""
    (product,) = fnmatch.filter(facts.shapes, EXPECTED[name][2].replace("?", "*"))
    return product


def check(name: str, facts: TraceFacts) -> None:
    counts, branches, _ = EXPECTED[name]
    product = product_of(name, facts)
    assert (facts.trip_counts, facts.branches) == (counts, branches)
    assert facts.shapes[product] == ((2, 3),)
    assert facts.shapes["_arg_x_0_0"] == ((2, 3),)
    assert facts.times_ns[product]


@pytest.mark.parametrize("name", FEEDS)
def test_a_trace_of_tensorflow_tells_counts_branches_and_shapes(name: str) -> None:
    """It has no iterations, which is said where there are loops."""
    facts = read_trace(DATA / f"{name}.trace.pb", joined(graph_of(name), FEEDS[name]))
    check(name, facts)
    assert all(name in str(facts.warnings) for name in facts.trip_counts)
    assert bool(facts.warnings) == bool(facts.trip_counts)


@pytest.mark.parametrize("name", FEEDS)
async def test_a_trace_of_a_session_tells_the_same(name: str) -> None:
    """With times of every iteration."""
    facts = read_trace(await own_trace(graph_of(name), FEEDS[name]), joined(graph_of(name), FEEDS[name]))
    check(name, facts)
    assert not facts.warnings
    times, counts = facts.times_ns[product_of(name, facts)], facts.trip_counts.values()
    most = sum(count if isinstance(count, int) else sum(count) for count in list(counts)[-1:])
    assert isinstance(times, int) if not most else not isinstance(times, int) and len(times) == most


@pytest.mark.parametrize("taken", [True, False])
async def test_a_conditional_that_is_not_lowered_tells_its_branch(taken: bool) -> None:
    """1 is then, 0 is else."""
    other = add_on(["", ""])
    other.signature.name = "other"
    b = GraphBuilder()
    x, p = b.placeholder("x", "float32", ()), b.placeholder("p", "bool", ())
    types = {"Tin": ["float32"], "Tout": ["float32"]}
    b.op("If", p, [x], name="y", attrs={**types, "then_branch": named("add_on"), "else_branch": named("other")})
    graph_def, feeds = b.graph_def(), {"x:0": 1.0, "p:0": taken}
    graph_def.library.CopyFrom(library_of(add_on([""]), other))
    facts = read_trace(await own_trace(graph_def, feeds), joined(graph_def, feeds))
    assert facts.branches == {"y": int(taken)}


def test_shapes_that_differ_between_iterations_are_told_by_iteration() -> None:
    """What they have in common is the shape of the node."""
    graph_def, stats = graph_of("loop"), StepStats()
    records = stats.dev_stats.add(device="/device:CPU:0").node_stats
    for number in range(2):
        record = NodeExecStats(node_name="w/mm", timeline_label=f"w/mm = MatMul @ w/while_context:{number}")
        record.output.add().tensor_description.shape.dim.add(size=2 + number)
        record.output[0].tensor_description.shape.dim.add(size=3)
        records.append(record)
    facts = read_trace(stats, joined(graph_def, FEEDS["loop"]))
    assert facts.shapes["w/mm"] == ((None, 3),)
    assert facts.shapes_by_iteration["w/mm"] == {"w/while_context:0": ((2, 3),), "w/while_context:1": ((3, 3),)}


def step_of(known: int, nodes: int) -> tuple[StepStats, JoinedGraph]:
    """A graph of so many kernels, and a trace that shares the names of some with it and has others besides."""
    b, stats = GraphBuilder(), StepStats()
    z = b.placeholder("z", "float32", ())
    records = stats.dev_stats.add(device="/device:CPU:0").node_stats
    for k in range(nodes):
        b.op("Neg", z, name=f"n{k}")
        name = f"n{k}" if k < known else f"other{k}"
        records.append(NodeExecStats(node_name=name, timeline_label=f"{name} = Neg(z)"))
    return stats, JoinedGraph({"/device:CPU:0": b.graph()})


@pytest.mark.parametrize(("known", "nodes", "says"), [(30, 30, ""), (15, 30, ""), (14, 30, "warns"), (3, 30, "warns")])
def test_a_trace_tells_how_many_nodes_it_knows(known: int, nodes: int, says: str) -> None:
    """It warns below half."""
    stats, graph = step_of(known, nodes)
    facts = read_trace(stats, graph)
    assert facts.coverage == (known, nodes)
    warnings = check_coverage(facts.coverage)
    assert bool(warnings) == bool(says)
    assert not says or f"the trace knows {known} of the {nodes} nodes of the step that take time" in warnings[0]


@pytest.mark.parametrize(("known", "nodes"), [(0, 3), (1, 11), (2, 30)])
def test_a_trace_of_another_graph_is_refused(known: int, nodes: int) -> None:
    """One that knows less than a tenth of the step, or shares no name with it."""
    stats, graph = step_of(known, nodes)
    with pytest.raises(InvalidArgumentError, match=r"the trace is of another graph"):
        check_coverage(read_trace(stats, graph).coverage or Coverage(0, 1))


def test_branches_that_were_not_taken_are_not_missing() -> None:
    """Of a Switch that only ever took one output the nodes behind the other are no part of the step."""
    b, stats = GraphBuilder(), StepStats()
    x, p = b.placeholder("x", "float32", ()), b.placeholder("p", "bool", ())
    off, on = b.op("Switch", x, p, name="s")
    for k in range(40):
        off = b.op("Neg", off, name=f"off{k}")[0]
    b.op("Neg", b.op("Merge", [off, b.op("Exp", on, name="on")[0]], name="m")[0], name="y")
    records = stats.dev_stats.add(device="/device:CPU:0").node_stats
    for name, op in {"s": "Switch", "on": "Exp", "y": "Neg"}.items():
        records.append(NodeExecStats(node_name=name, timeline_label=f"{name} = {op}(x)"))
        records[-1].output.add(slot=1)
    assert read_trace(stats, JoinedGraph({"/device:CPU:0": b.graph()})).coverage == (2, 2)


@pytest.mark.parametrize(
    "numbers",
    [
        {"op_start_rel_nanos": 5, "op_end_rel_nanos": 3},
        {"op_start_rel_micros": 5, "op_end_rel_micros": 3},
        {"op_end_rel_nanos": -7},
        {"all_start_nanos": -1},
        {"all_start_micros": -(2**62)},
        {"op_end_rel_micros": 2**62},
    ],
)
def test_times_that_cannot_be_are_refused(numbers: dict[str, Any]) -> None:  # Any: fields of a message
    """Ends before begins, times before the epoch, and times that 64 bits of ns do not hold; the record is named."""
    stats, graph = step_of(2, 2)
    stats.dev_stats[0].node_stats.append(NodeExecStats(node_name="n1", timeline_label="n1 = Neg(z)", **numbers))
    with pytest.raises(InvalidArgumentError, match=r"a record of 'n1' that (takes|begins at) -?\d+ ns"):
        read_trace(stats, graph)


def test_outputs_are_as_many_as_the_node_has() -> None:
    """A slot of 2**30 in a file is no reason to count so far."""
    stats, graph = step_of(2, 2)
    for name in ("n1", "unknown"):
        record = NodeExecStats(node_name=name, timeline_label=f"{name} = Neg(z)")
        record.output.add(slot=2**30)
        record.output.add(slot=0)
        stats.dev_stats[0].node_stats.append(record)
    facts = read_trace(stats, graph)
    assert facts.shapes["n1"] == ((),)
    assert len(facts.shapes["unknown"]) <= 64


def test_turns_without_end_are_refused() -> None:
    """A loop that ran a billion times, says a label, is not counted turn by turn."""
    counts: dict[str, dict[tuple[tuple[str, int], ...], int]] = {"outer": {(): 10**9}}
    with pytest.raises(InvalidArgumentError, match=r"loop 'outer' ran over 10000000 times"):
        by_turn({(("outer", 0),): 1, (("outer", 1),): 2}, counts)
    assert by_turn({(("outer", 0),): 1, (("outer", 1),): 2}, {"outer": {(): 3}}) == [1, 2, 0]
