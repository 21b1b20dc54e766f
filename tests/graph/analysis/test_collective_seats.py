"""Collectives that share the input with their instance key and differ by the attr `_instance`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors import open_session
from partita.devices import cut, local_cluster, simulate
from partita.errors import InvalidArgumentError
from partita.graph import gradients
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.graph import Graph
from tests.strategies import cpu

MEMBERS = 2
STEP = 1 << 24
AXIS = {"_mesh": b"pp:1,dp:1,cp:1,tp:2", "_axis": b"tp"}
VALUES = {"x0": np.array([1.0, 2.0]), "x1": np.array([10.0, 20.0])}


def sums(*instances: Any) -> tuple[GraphBuilder, list[Tensor]]:
    """Of each member: a chain of sums over both, squared in between, with these instances and one key input."""
    b, ends = GraphBuilder(), []
    for n in range(MEMBERS):
        with b.device(cpu(n)):
            key = b.constant(5, name=f"key{n}")
            y = b.placeholder(f"x{n}", "float64", (2,))
            for k, instance in enumerate(instances):
                attrs = {"merge_op": b"Add", "final_op": b"Id", **AXIS}
                attrs |= {} if instance is None else {"_instance": instance}
                y = b.op("CollectiveReduceV2", b.op("Square", y), MEMBERS, 1, key, [], name=f"y{n}_{k}", attrs=attrs)[0]
            ends.append(y)
    return b, ends


async def test_what_shares_a_key_is_told_apart_by_the_attr() -> None:
    """Two sums with one input for their key are two meetings."""
    b, ends = sums(1, 2)
    squares = VALUES["x0"] ** 2 + VALUES["x1"] ** 2
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        for value in await session.run(ends, VALUES):
            np.testing.assert_allclose(value, 2 * squares**2)


async def test_the_attr_is_added_to_the_key() -> None:
    """Members meet whose sums of key and attr are equal; so do those of version 1."""
    b = GraphBuilder()
    for n, (key, instance) in enumerate([(3, 4), (7, 0)]):
        attrs = {"merge_op": b"Add", "final_op": b"Id", "subdiv_offsets": [0], "_instance": instance}
        with b.device(cpu(n)):
            b.op("CollectiveReduce", 1.0, group_size=2, group_key=1, instance_key=key, name=f"v{n}", attrs=attrs)
            del attrs["subdiv_offsets"]
            b.op("CollectiveReduceV2", 2.0, 2, 2, key, [], name=f"w{n}", attrs=attrs)
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        assert await session.run(["v0", "v1", "w0", "w1"]) == [2.0, 2.0, 4.0, 4.0]


def test_on_the_clock_they_are_two() -> None:
    """As two at the times that other numbers give."""
    cluster = local_cluster(f"cpu:{MEMBERS}")

    def events(*instances: Any) -> list[tuple[int, int]]:
        b, ends = sums(*instances)
        timeline = simulate(cut(b.graph_def(), cluster, feeds=["x0", "x1"], fetches=ends), cluster)
        return [(event.start_ns, event.end_ns) for event in timeline.events if event.kind == "collective"]

    assert len(events(1, 2)) == 4
    assert events(1, 2) == events(0, STEP)


async def test_one_instance_that_comes_twice_is_refused_before_the_step() -> None:
    """The check of groups adds the attr, too."""
    b, ends = sums(2, 2)
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        with pytest.raises(InvalidArgumentError, match=r"group 1, instance 7: device .* comes twice in one step"):
            await session.run(ends, VALUES)


def nodes_of(graph: Graph, *ops: str) -> list[Any]:
    """The attrs of gradients among the nodes of these ops."""
    return [dict(node.attrs) for node in graph.op_nodes() if node.op in ops and "_gradient_number" in node.attrs]


async def test_gradients_have_instances_of_their_own() -> None:
    """2^24 above the op's, with the input for the key as it was, and the op's mesh and axis; values are right."""
    b, ends = sums(1, 2)
    names = gradients(b, ends, ["x0", "x1"])
    found = nodes_of(b.graph(), "CollectiveReduceV2")
    assert sorted(attrs["_instance"] for attrs in found) == [1 + STEP, 1 + STEP, 2 + STEP, 2 + STEP]
    assert all(attrs["_axis"] == b"tp" and attrs["_mesh"] == AXIS["_mesh"] for attrs in found)
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        squares = VALUES["x0"] ** 2 + VALUES["x1"] ** 2
        for value, x in zip(await session.run([str(name) for name in names], VALUES), VALUES.values(), strict=True):
            np.testing.assert_allclose(value, 4 * 2 * squares * 2 * x)


async def test_gradients_of_gradients_go_on_counting() -> None:
    """The gradient of a gradient takes the next instance, so that all run in one step."""
    b, ends = sums(1, 2)
    first = gradients(b, ends, ["x0", "x1"])
    second = gradients(b, [str(name) for name in first], ["x0", "x1"])
    instances = [attrs["_instance"] for attrs in nodes_of(b.graph(), "CollectiveReduceV2")]
    assert {instance // STEP for instance in instances} == {1, 2, 3}
    async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
        got = await session.run([str(name) for name in second], VALUES)
    u, v = VALUES.values()
    for value, x in zip(got, (u, v), strict=True):  # of sum over members of 16 (u^2 + v^2) x
        np.testing.assert_allclose(value, 16 * (u**2 + v**2) + 32 * x * (u + v))


@pytest.mark.parametrize("attr", [b"one", 1.5, [1]])
async def test_an_instance_that_is_no_number_is_refused(attr: Any) -> None:
    """In a run and on the clock."""
    b, ends = sums(attr)
    cluster = local_cluster(f"cpu:{MEMBERS}")
    with pytest.raises(InvalidArgumentError, match="attr _instance must be an int"):
        simulate(cut(b.graph_def(), cluster, feeds=["x0", "x1"], fetches=ends), cluster)
    with pytest.raises(InvalidArgumentError, match="attr _instance must be an int"):
        async with open_session(b.graph_def(), f"cpu:{MEMBERS}") as session:
            await session.run(ends, VALUES)
