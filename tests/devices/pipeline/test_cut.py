"""`cut` gives the graphs that a session cuts for its first request, and `simulate` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.devices import cut, local_cluster
from partita.devices.timing import simulate
from partita.errors import InvalidArgumentError, NotFoundError
from partita.graph import GraphDef
from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.graphdef.sources import GraphSource
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.strategies import GraphCase, placed_cases

CLUSTER = local_cluster("cpu:4")
Messages = dict[str, GraphDef]


def messages(parts: Mapping[str, Graph]) -> Messages:
    return {name: part.to_graph_def() for name, part in parts.items()}


async def first_of_a_session(
    graph_def: GraphDef, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str] = (), inline: bool = False
) -> Messages:
    """The partitions of the first request of a session."""
    async with open_session(graph_def, CLUSTER, passes="inline" if inline else "") as session:
        return messages(session.prepare(feeds, fetches, targets).partitions)


@given(placed_cases())
async def test_a_cut_is_what_a_session_runs(drawn: tuple[GraphCase, dict[str, str]]) -> None:
    """Names, attrs and the order of nodes, for any graph and placement."""
    case, placement = drawn
    graph_def, request = case.on(placement), (list(case.feeds), case.fetches, case.targets)
    parts = cut(graph_def, CLUSTER, feeds=request[0], fetches=request[1], targets=request[2])
    assert messages(parts) == await first_of_a_session(graph_def, *request)


@given(function_programs(conflicting=False), st.booleans())
async def test_a_cut_with_functions_is_what_a_session_runs(program: FunctionProgram, inline: bool) -> None:
    """Called or inlined."""
    feeds = list(program.feeds)
    parts = cut(program.graph_def, CLUSTER, feeds=feeds, fetches=program.fetches, inline=inline)
    assert messages(parts) == await first_of_a_session(program.graph_def, feeds, program.fetches, inline=inline)


def chain() -> GraphBuilder:
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (2, None))
    for k in (2, 0, 1):
        x = b.op("Neg", x, name=f"n{k}", device=f"/device:CPU:{k}")[0]
    return b


def test_partitions_come_in_the_order_of_the_cluster_and_can_be_simulated() -> None:
    """By full name; they know the shapes of feeds, and refuse others."""
    parts = cut(chain(), "cpu:3", feeds=["x"], fetches="n1")
    assert list(parts) == local_cluster("cpu:3").names
    assert simulate(parts, "cpu:3", feeds={"x": (2, 5)}).makespan_ns > 0
    with pytest.raises(InvalidArgumentError, match="x"):
        simulate(parts, "cpu:3", feeds={"x": (3, 5)})


def test_a_graph_may_be_given_in_any_form() -> None:
    """A builder, its message, the bytes of that, a graph."""
    b = chain()
    forms: list[GraphSource] = [b, b.graph_def(), b.graph_def().SerializeToString(), b.graph()]
    expected, *others = [messages(cut(form, "cpu:3", feeds=["x"], fetches=["n1"])) for form in forms]
    assert all(other == expected for other in others)


def test_a_device_that_does_not_exist_is_refused_unless_placement_is_soft() -> None:
    """As in a session."""
    with pytest.raises(InvalidArgumentError, match="n2"):
        cut(chain(), "cpu:2", feeds=["x"], fetches=["n1"])
    assert len(cut(chain(), "cpu:2", feeds=["x"], fetches=["n1"], allow_soft_placement=True)) == 2


def test_names_that_do_not_exist_are_refused() -> None:
    """An unknown fetch, and an empty request."""
    with pytest.raises(NotFoundError, match="nobody"):
        cut(chain(), "cpu:3", fetches=["nobody"])
    with pytest.raises(InvalidArgumentError, match="at least one target"):
        cut(chain(), "cpu:3")
