"""Graphs, devices and tensors in all forms that are accepted; other arguments are a typed error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partita.actors import BlockingSession, open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.devices import cut, local_cluster
from partita.devices.placement.placer import place
from partita.devices.timing import simulate
from partita.errors import InvalidArgumentError, NotFoundError, PartitaError
from partita.graph import (
    ClientRequest,
    MetaGraphDef,
    NodeDef,
    client_graph,
    gradients,
    load_graph_def,
    load_saved_model,
    save_graph_def,
    split_graph,
)
from partita.graph.builder import GraphBuilder
from partita.graph.tensor_id import TensorId


def doubled() -> GraphBuilder:
    """y = 2 x, and the node `go` without outputs."""
    b = GraphBuilder()
    b.op("Mul", b.placeholder("x", "float32", (2,)), 2.0, name="y", device="/device:CPU:1")
    b.group("y", name="go")
    return b


X = np.array([1, 2], np.float32)

SOURCES: dict[str, Callable[[GraphBuilder, Path], Any]] = {
    "message": lambda b, _: b.graph_def(),
    "bytes": lambda b, _: b.SerializeToString(),
    "bytearray": lambda b, _: bytearray(b.SerializeToString()),
    "builder": lambda b, _: b,
    "graph": lambda b, _: b.graph(),
    "path": lambda _, path: path,
    "text path": lambda _, path: str(path),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the graph."""
    save_graph_def(doubled().graph_def(), tmp_path / "doubled.pb")
    return tmp_path / "doubled.pb"


@pytest.mark.parametrize("kind", SOURCES)
async def test_a_graph_may_be_given_in_any_form(kind: str, path: Path) -> None:
    """In sessions of both kinds, `cut` and `simulate`."""
    source = SOURCES[kind](doubled(), path)
    async with open_session(source, "cpu:2") as session:
        assert (await session.run("y", {"x": X}))[0].tolist() == [2, 4]
    async with open_cluster_session(source, "cpu:2") as cluster_session:
        assert (await cluster_session.run("y", {"x": X}))[0].tolist() == [2, 4]
    parts = cut(source, "cpu:2", feeds="x", fetches=["y"])
    assert simulate(parts, "cpu:2", feeds={"x": (2,)}).makespan_ns > 0


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, "NoneType None is no graph; give a GraphDef, its bytes, the path"),
        (3, "int 3 is no graph"),
        (["doubled.pb"], "list .* is no graph"),
        (GraphBuilder, "type .* is no graph"),
        (np.zeros(3), "ndarray .* is no graph"),
        (NodeDef(name="x"), "a NodeDef is no graph"),
        (MetaGraphDef(), "a MetaGraphDef is no graph; its field graph_def is one"),
        (GraphBuilder().constant(1.0), "Tensor .* is no graph"),
        (b"\xff no graph", "Invalid GraphDef"),
        ("missing.pb", "cannot read 'missing.pb'"),
        (Path(__file__).parent, "is a folder; give a GraphDef file, or open a SavedModel with open_saved_model"),
    ],
)
async def test_another_argument_than_a_graph_is_refused_by_type(source: Any, why: str) -> None:
    """The error says what is accepted."""
    with pytest.raises((InvalidArgumentError, NotFoundError), match=why):
        async with open_session(source):
            pass
    with pytest.raises((InvalidArgumentError, NotFoundError), match=why):
        cut(source, local_cluster("cpu"), fetches=["y"])


@pytest.mark.parametrize("devices", [None, 2, ["cpu:2"], GraphBuilder()])
async def test_another_argument_than_devices_is_refused_by_type(devices: Any) -> None:
    """In sessions, `cut` and `simulate`."""
    why = f"{type(devices).__name__} is no cluster"
    with pytest.raises(InvalidArgumentError, match=why):
        async with open_session(doubled(), devices):
            pass
    with pytest.raises(InvalidArgumentError, match=why):
        cut(doubled(), devices, feeds=["x"], fetches=["y"])
    with pytest.raises(InvalidArgumentError, match=why):
        simulate({}, devices)


@pytest.mark.parametrize("partitions", [doubled(), doubled().graph(), doubled().graph_def(), "doubled.pb", None, []])
def test_a_graph_in_the_place_of_its_parts_is_refused(partitions: Any) -> None:
    """The error names the function that makes the parts."""
    with pytest.raises(
        InvalidArgumentError, match=r"not a mapping from device names to graphs; .*partita\.devices\.cut"
    ):
        simulate(partitions, "cpu:2")


async def test_tensors_may_be_given_as_the_builder_made_them() -> None:
    """In runs, callables and partial runs, alone or in a list; so may nodes and tensor ids."""
    b = doubled()
    x, y = b.tensor("x"), b.operation("y")
    node = b.graph().find_node("y")
    async with open_session(b, "cpu:2") as session:
        forms: list[Any] = [y, y[0], [y[0]], (y,), node, [node], TensorId("y", 0), [TensorId("y", 0)], iter(["y"])]
        for fetches in forms:
            assert [value.tolist() for value in await session.run(fetches, {x: X})] == [[2, 4]]
        assert len(await session.run([y, "y:0", y[0]], [(x, X)], targets=b.operation("go"))) == 3
        assert (await (await session.make_callable(x, y))(X))[0].tolist() == [2, 4]
        handle = await session.partial_run_setup([y], x)
        assert (await session.partial_run(handle, y, {x: X}))[0].tolist() == [2, 4]
        assert session.prepare(x, y).partitions
    async with open_cluster_session(b, "cpu:2") as cluster_session:
        assert (await cluster_session.run(y, {x: X}))[0].tolist() == [2, 4]
    assert list(cut(b, "cpu:2", feeds=x, fetches=y))


def test_a_blocking_session_accepts_the_same(path: Path) -> None:
    """A path, and tensors of a builder."""
    b = doubled()
    with BlockingSession(path, "cpu:2") as session:
        assert session.run(b.operation("y"), {b.tensor("x"): X})[0].tolist() == [2, 4]


@pytest.mark.parametrize("fetches", [None, 3, b"y", {"y": "y"}, {"y"}, [["y"]], [3], ["y", None], X, doubled()])
async def test_another_argument_than_a_tensor_is_refused_by_type(fetches: Any) -> None:
    """The session runs the next step."""
    async with open_session(doubled(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError, match=r"names no tensor|has no order"):
            await session.run(fetches, {"x": X})
        with pytest.raises(InvalidArgumentError, match=r"names no tensor|has no order"):
            await session.run("y", {"x": X}, targets=fetches)
        assert (await session.run("y", {"x": X}))[0].tolist() == [2, 4]


@pytest.mark.parametrize("feeds", [X, 3, "x", ["x"], [("x", X, 1)], {3: X}, {None: X}, doubled(), {"x": None}])
async def test_malformed_feeds_are_refused(feeds: Any) -> None:
    """Keys that name no tensor, and arguments that are neither a mapping nor pairs."""
    async with open_session(doubled(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError):
            await session.run("y", feeds)
        assert (await session.run("y", {"x": X}))[0].tolist() == [2, 4]


@pytest.mark.parametrize("handle", ["x", "y"])
async def test_a_tensor_of_the_graph_cannot_be_fed(handle: str) -> None:
    """It has no value."""
    b = doubled()
    async with open_session(b, "cpu:2") as session:
        with pytest.raises(InvalidArgumentError):
            await session.run("y", {"x": b.tensor(handle)})  # type: ignore[arg-type]  # that is the mistake


@pytest.mark.parametrize("value", [doubled(), doubled().graph_def(), b"", None, "doubled.pb"])
def test_functions_on_graphs_refuse_other_arguments(value: Any) -> None:
    """The errors of placing, pruning, cutting and gradients say how to get a graph; gradients take a builder too."""
    calls: list[Callable[[], object]] = [
        lambda: place(value, local_cluster("cpu")),
        lambda: client_graph(value, ClientRequest(fetches=["y"], device="/device:CPU:0")),
        lambda: split_graph(value),
        *([] if isinstance(value, GraphBuilder) else [lambda: gradients(value, "y", "x")]),
    ]
    for call in calls:
        with pytest.raises(
            InvalidArgumentError, match=r"is no Graph; (call its method graph|import it with graph_def_)"
        ):
            call()


def test_gradients_and_simulations_accept_tensors_of_a_builder() -> None:
    """A single name is one name and not a sequence of letters."""
    b = doubled()
    graph = b.graph()
    assert gradients(graph, b.operation("y"), [b.tensor("x")]) == gradients(b.graph(), "y:0", "x:0")
    parts = cut(b, "cpu:2", feeds=b.tensor("x"), fetches=b.operation("y"))
    assert simulate(parts, "cpu:2", feeds={b.tensor("x"): (2,)}).makespan_ns > 0  # type: ignore[dict-item]  # as names
    with pytest.raises(InvalidArgumentError, match="not a mapping from tensors to shapes"):
        simulate(parts, "cpu:2", feeds=[(2,)])  # type: ignore[arg-type]  # that is the mistake


async def test_the_error_for_an_unknown_name_suggests_a_similar_one() -> None:
    """For feeds, fetches and targets."""
    async with open_session(doubled(), "cpu:2") as session:
        for request in (("Y", {"x": X}, ()), ("y", {"X": X}, ()), ("y", {"x": X}, "goo")):
            with pytest.raises(PartitaError, match=r"did you mean '(x|y|go)'"):
                await session.run(*request)


def test_reading_and_writing_files_checks_types(tmp_path: Path, path: Path) -> None:
    """Bytes may be read in place of a path; other arguments than paths and GraphDefs are refused."""
    graph_def = doubled().graph_def()
    assert load_graph_def(graph_def.SerializeToString()) == load_graph_def(path) == graph_def
    no_paths: list[Any] = [None, 3, graph_def, doubled()]
    for wrong in no_paths:
        with pytest.raises(InvalidArgumentError, match=f"{type(wrong).__name__} is no path"):
            load_graph_def(wrong)
        with pytest.raises(InvalidArgumentError, match=f"{type(wrong).__name__} is no path"):
            load_saved_model(wrong)
    no_graph_defs: list[Any] = [None, doubled(), doubled().graph(), b""]
    for wrong in no_graph_defs:
        with pytest.raises(InvalidArgumentError, match=f"{type(wrong).__name__} is no GraphDef"):
            save_graph_def(wrong, tmp_path / "out.pb")
    with pytest.raises(InvalidArgumentError, match="the bytes"):
        load_graph_def(b"\xff no graph")
