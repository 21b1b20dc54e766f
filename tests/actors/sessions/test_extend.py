"""Extending a session's graph: new nodes read old ones, requests and state stay, a refused extension has no effect."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, strategies as st

from partita.errors import AbortedError, CancelledError, InvalidArgumentError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import FunctionDef, GraphDef, NodeDef
from partita.graph.protos.types_pb2 import DT_FLOAT
from partita.graph.tensor import numpy_to_tensor
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.runs import HARD_PLACEMENT, assert_same_values
from tests.strategies import GraphCase, cpu, placed_cases


def counter() -> GraphDef:
    """A counter on the second CPU, and the nodes that set and increase it."""
    b = GraphBuilder()
    count = b.variable("count", "float32", ())
    b.op("Assign", count, 0.0, name="reset")
    b.op("AssignAdd", count, 1.0, name="step")
    graph = b.graph_def()
    for node in graph.node:
        node.device = cpu(1)
    return graph


def addition(*nodes: str, producer: int | None = None) -> GraphDef:
    """NodeDefs from text."""
    graph = GraphDef(node=[text_format.Parse(text, NodeDef()) for text in nodes])
    if producer is not None:
        graph.versions.producer = producer
    return graph


TWICE = 'name: "twice" op: "AddV2" input: "count" input: "count" attr { key: "T" value { type: DT_FLOAT } }'


@on_every_deployment
@given(placed_cases(), st.data())
async def test_a_graph_in_two_pieces_equals_the_whole(
    deployment: Deployment, placed: tuple[GraphCase, dict[str, str]], data: st.DataObject
) -> None:
    """For any cut of the list of nodes in two."""
    case, placement = placed
    whole = deployment.moved(case.on(placement), 4)
    middle = data.draw(st.integers(1, len(whole.node)))
    first, second = GraphDef(node=whole.node[:middle], versions=whole.versions), GraphDef(node=whole.node[middle:])
    async with deployment.open(whole, 4, config=HARD_PLACEMENT) as session:
        expected = await session.run(case.fetches, case.feeds, case.targets)
    async with deployment.open(first, 4, config=HARD_PLACEMENT) as session:
        await session.extend(second)
        assert_same_values(*(await session.run(case.fetches, case.feeds, case.targets), expected))


@on_every_deployment
async def test_state_and_requests_stay(deployment: Deployment) -> None:
    """Also partial runs that were begun before."""
    async with deployment.open(counter(), 2) as session:
        await session.run((), targets="reset")
        step = await session.make_callable((), "step")
        handle = await session.partial_run_setup("count", ())
        await step()
        before = session.graph
        await session.extend(addition(TWICE))
        assert session.graph is not before
        assert before.find_node("twice") is None
        assert await step() == [2.0]
        assert await session.run("twice") == [4.0]
        assert await session.partial_run(handle, "count") in ([0.0], [1.0], [2.0])


@on_every_deployment
async def test_a_session_may_begin_without_a_graph(deployment: Deployment) -> None:
    async with deployment.open(GraphDef(), 2) as session:
        with pytest.raises(InvalidArgumentError, match=r"^Session was not created with a graph before Run\(\)!"):
            await session.run("count")
        await session.extend(deployment.moved(counter(), 2))
        assert await session.run("reset") == [0.0]


def function(name: str, value: float) -> FunctionDef:
    """A function of no arguments that returns a number."""
    function = FunctionDef(ret={"y": "c:output:0"})
    function.signature.name = name
    function.signature.output_arg.add(name="y", type=DT_FLOAT)
    node = function.node_def.add(name="c", op="Const")
    node.attr["dtype"].type = DT_FLOAT
    node.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array(value, np.float32)))
    return function


@on_every_deployment
async def test_a_refused_addition_changes_nothing(deployment: Deployment) -> None:
    """Existing names of nodes and functions, unknown inputs, damaged bytes, a wrong version."""
    clash = (
        "GraphDef argument to Extend includes node 'count', which was created by a previous call to Create or Extend"
    )
    other = GraphDef()
    other.library.function.append(function("f", 2))
    refused: list[tuple[GraphDef | bytes, str]] = [
        (addition('name: "fresh" op: "NoOp"', 'name: "count" op: "NoOp"'), clash),
        (addition('name: "n" op: "NoOp" input: "^nobody"'), "Node 'n': Unknown input node '\\^nobody'"),
        (addition('name: "n" op: "NoOp"', 'name: "n" op: "NoOp"'), "Node 'n' is not unique"),
        (addition('name: "n" op: "NoOp"', producer=-1), "GraphDef producer version -1 below min producer"),
        (other, "Cannot add function 'f' because a different function with the same name already exists"),
        (b"\xff\xff", "Invalid GraphDef"),
    ]
    graph = counter()
    graph.library.function.append(function("f", 1))
    async with deployment.open(graph, 2) as session:
        before = session.graph
        for bad, message in refused:
            with pytest.raises(PartitaError, match=message):
                await session.extend(bad)
        assert session.graph is before
        same = addition('name: "fresh" op: "NoOp"', producer=2000)
        same.library.function.append(function("f", 1))
        await session.extend(same)
        assert session.graph.versions.producer == 2000
        assert await session.run((), targets="fresh") == []
    with pytest.raises(CancelledError, match=r"^Session has been closed"):
        await session.extend(addition(TWICE))


@on_every_deployment
async def test_an_extension_of_a_stated_version_is_made_once(deployment: Deployment) -> None:
    """Two clients that extend the same version: the second has to look at the graph again."""
    async with deployment.open(counter(), 2) as session:
        assert session.graph_version == 0
        assert await session.extend(addition(TWICE), current_version=0) == 1
        stale = r"^Current version is 1 but caller expected 0\."
        with pytest.raises(AbortedError, match=stale):
            await session.extend(addition(TWICE.replace("twice", "again")), current_version=0)
        with pytest.raises(InvalidArgumentError, match="includes node 'twice'"):
            await session.extend(addition(TWICE), current_version=1)
        assert session.graph_version == 1
        assert await session.extend(addition(TWICE.replace("twice", "again"))) == 2
