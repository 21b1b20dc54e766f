"""A graph runner gives the values of a session, and refuses graphs that would have to wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from partita.actors.running.graph_runner import GraphRunner, SimpleRendezvous
from partita.errors import InternalError, InvalidArgumentError, NotFoundError, PartitaError
from partita.graph.builder import GraphBuilder
from partita.graph.graph import Graph
from partita.graph.graphdef.importer import graph_def_to_graph
from tests.actors.programs import Program, programs
from tests.runs import assert_same_values, values
from tests.strategies import GraphCase, graph_cases


def imported(graph_def: Any) -> Graph:
    """A graph as a session imports it."""
    return graph_def_to_graph(graph_def, add_default_attrs=True)


@given(graph_cases())
async def test_a_runner_computes_what_a_session_does(case: GraphCase) -> None:
    """Fetches come in the requested order; the graph is not changed."""
    assume(case.fetches)
    graph = imported(case.graph_def)
    before = graph.to_graph_def()
    fetches = tuple(dict.fromkeys(case.fetches))
    got = dict(zip(fetches, GraphRunner().run(graph, case.feeds, fetches), strict=True))
    assert_same_values([got[name] for name in case.fetches], await values(case.on_one_device(), case))
    assert graph.to_graph_def() == before


@given(programs(devices=1))
def test_loops_run_and_dead_fetches_are_refused(case: Program) -> None:
    """A fetch has a value, or it is dead and raises the error of the send."""
    graph = imported(case.graph_def)
    for name in dict.fromkeys(case.fetches):
        try:
            (value,) = GraphRunner().run(graph, case.feeds, [name])
        except InternalError as error:
            assert error.message == "Send of a dead tensor"  # noqa: PT017 - either way is right
        else:
            assert value.shape == ()


def sums() -> Graph:
    """y = x + 1, same = x, v counts."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32")
    b.op("AddV2", x, 1.0, name="y")
    b.op("Identity", x, name="same")
    b.op("Switch", 1.0, b.constant(False), name="switch")
    b.op("AssignAdd", b.op("Assign", b.variable("v", "float32", ()), 1.0, name="set"), 1.0, name="more")
    return imported(b.graph_def())


def check_refused(error: type[PartitaError], message: str, feeds: Any, fetches: list[str]) -> None:
    """The request raises exactly that."""
    with pytest.raises(error) as caught:
        GraphRunner().run(sums(), feeds, fetches)
    assert caught.value.message == message


def test_requests_are_checked() -> None:
    """By the runner's rendezvous, which never waits and accepts each tensor once."""
    check_refused(InvalidArgumentError, "Must specify at least one target to fetch or execute.", {"x": [1.0]}, [])
    check_refused(InvalidArgumentError, "y:0 is both fed and fetched.", {"y:0": [1.0]}, ["y:0"])
    check_refused(InvalidArgumentError, "Expects arg[0] to be float but int64 is provided", {"x": np.arange(2)}, ["y"])
    check_refused(NotFoundError, "FetchOutputs node nobody: not found", {}, ["nobody"])
    missing = "Did not find key {0};0000000000000001;{0};y;0:0".format("/job:localhost/replica:0/task:0/device:CPU:0")
    check_refused(InternalError, missing, {"x": [1.0]}, ["y", "y:0"])
    check_refused(InternalError, "Send of a dead tensor", {}, ["switch:1"])


def test_a_tensor_may_be_asked_for_twice() -> None:
    """It is sent once and can be received any number of times, as in TensorFlow."""
    first, second = GraphRunner().run(sums(), {"x": [1.0]}, ["y", "y"])
    assert first.tolist() == second.tolist() == GraphRunner().run(sums(), {"x": [1.0]}, ["y"])[0].tolist()
    assert not np.shares_memory(first, second)


def test_a_rendezvous_that_never_waits() -> None:
    """Tensors are stored by edge name and stay."""
    rendezvous = SimpleRendezvous()
    key, other = "/cpu:0;0000000000000001;/cpu:1;x:0;0:0", "/cpu:1;0000000000000002;/cpu:0;x:0;1:2"
    with pytest.raises(InternalError, match=r"^Did not find key /cpu:0;0000000000000001;/cpu:1;x:0;0:0"):
        rendezvous.recv(key)
    rendezvous.send(key, 1)
    assert [rendezvous.recv(name) for name in (key, other, key)] == [1, 1, 1]
    with pytest.raises(InternalError, match=r"^Send of an already sent tensor"):
        rendezvous.send(other, 2)


def test_what_comes_back_belongs_to_the_caller() -> None:
    """Writing to a fetched array changes nothing else; variables live as long as the runner."""
    runner, x = GraphRunner(), np.ones(2, np.float32)
    (same,) = runner.run(sums(), {"x": x}, ["same"])
    same += 1
    assert x.tolist() == [1, 1]
    (more,) = runner.run(sums(), {}, ["more"])
    more += 5
    assert runner.run(sums(), {}, ["v"]) == [2.0]
