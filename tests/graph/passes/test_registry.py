"""Passes by name: order, those that a program registers, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from partita.actors import open_session
from partita.devices import local_cluster
from partita.devices.pipeline import Pipeline
from partita.errors import AlreadyExistsError, InvalidArgumentError
from partita.graph import Graph, GraphContext, GraphPass, PartitionContext, PartitionPass, register_pass
from partita.graph.builder import GraphBuilder
from partita.graph.passes import registry
from partita.graph.passes.optimising.optimizer import optimize
from partita.graph.passes.registry import find_pass, pass_names
from partita.graph.passes.selection import Passes
from tests.function_defs import function_of
from tests.graph.passes.evaluator import CountingEvaluator


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "_PASSES", {})


def calling() -> GraphBuilder:
    """y = N(x), where N negates."""
    b = GraphBuilder()
    body = GraphBuilder()
    body.op("Neg", body.placeholder("x", "float32"), name="y")
    b.function(function_of("N", body.graph_def(), ["x:0"], ["y:0"]))
    b.op("N", b.placeholder("x", "float32", ()), name="y")
    return b


def on_last(graph: Graph, context: GraphContext) -> Graph:
    """Requests the last device for everything."""
    result = graph.clone()
    for node in list(result.op_nodes()):
        node.requested_device = context.devices[-1]
    return result


@pytest.mark.parametrize(("text", "seen"), [("spy", {"N"}), ("spy,inline", {"N"}), ("inline,spy", {"Neg"})])
def test_a_pass_before_inlining_sees_calls(text: str, seen: set[str]) -> None:
    """One after it sees the nodes of the functions; without `inline` nothing is lowered yet."""
    ops: list[set[str]] = []

    def spy(graph: Graph, _: GraphContext) -> Graph:
        ops.append({node.op for node in graph.op_nodes()} & {"N", "Neg"})
        return graph

    register_pass(GraphPass("spy", "notes the ops", spy))
    Pipeline(local_cluster("cpu:1"), Passes.parse(text)).read(calling()).lower()
    assert ops == [seen]


async def test_one_that_a_program_registers_runs_in_sessions() -> None:
    """It knows the devices of the cluster, and what it requests is where nodes run."""
    register_pass(GraphPass("last", "everything on the last device", on_last))
    async with open_session(calling(), "cpu:3", passes="inline,last") as session:
        assert await session.run(["y:0"], {"x": 2.0}) == [-2.0]
        ran_on = {name for name, part in session.prepare("x", "y:0").partitions.items() if part.find_id("y")}
        assert ran_on == {session.cluster.names[2]}


def test_passes_over_partitions_are_repeated_until_nothing_changes() -> None:
    """A pass that changes the graph twice is asked three times."""
    asked: list[int] = []

    def twice(graph: Graph, context: PartitionContext) -> Graph:
        asked.append(context.max_constant_bytes)
        return graph.clone() if len(asked) <= 2 else graph

    register_pass(PartitionPass("twice", "changes the graph twice", twice))
    wanted = Passes(("twice",), max_constant_bytes=7)
    optimize(calling().graph(), wanted, CountingEvaluator())
    assert asked == [7, 7, 7]


def test_a_name_is_taken_once() -> None:
    """Built-in names too."""
    with pytest.raises(AlreadyExistsError, match=r"there is a pass 'fold' \(nodes with constant inputs"):
        register_pass(GraphPass("fold", "mine", on_last))
    register_pass(GraphPass("mine", "mine", on_last))
    with pytest.raises(AlreadyExistsError, match="'mine'"):
        register_pass(GraphPass("mine", "mine", on_last))
    assert pass_names()[-1] == "mine"


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(InvalidArgumentError, match="no pass 'none'; there are inline, converters, dead"):
        find_pass("none")


@pytest.fixture
def _installed(install: Callable[[str, str, str], Path]) -> None:
    """A package with a pass that works, one that cannot be imported, and one that is none."""
    install(
        "acme_passes",
        "from partita.graph import GraphPass\nSAME = GraphPass('same', 'nothing', lambda graph, _: graph)\n",
        "[partita.passes]\nsame = acme_passes:SAME\nother = acme_passes:SAME\nlost = no_such_module:X\n",
    )


@pytest.mark.usefixtures("_installed")
def test_one_of_an_installed_package() -> None:
    """It is loaded when its name is asked for; what is no pass of that name, or cannot be imported, is named."""
    assert find_pass("same").summary == "nothing"
    with pytest.raises(InvalidArgumentError, match=r"'other', 'acme_passes:SAME', is GraphPass\(name='same'"):
        find_pass("other")
    with pytest.raises(InvalidArgumentError, match=r"'lost', 'no_such_module:X', cannot be loaded"):
        find_pass("lost")
    assert pass_names()[-3:] == ["same", "lost", "other"]
