"""Loops in the reference executor: iterations, nesting, dead loops, and the limit of parallel iterations."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.actors.plans.binding import Binder
from partita.actors.plans.instructions import DEAD
from partita.actors.running.reference import run_reference
from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.passes.client_graph import client_graph
from partita.graph.passes.client_request import ClientRequest
from partita.graph.protos import GraphDef
from tests.strategies import cpu


def add_loop(
    builder: GraphBuilder, name: str, start: Tensor, limit: Tensor, step: Any, parallel: int = 10
) -> tuple[Tensor, Tensor]:
    """`value, count = start, 0; while count < limit: value, count = step(value), count + 1`; both at the exit."""
    frame: dict[str, Any] = {"frame_name": name, "parallel_iterations": parallel}
    with builder.device(cpu(0)):
        zero = builder.op("Const", dtype="int32", value=np.int32(0), control=[start.node])[0]
        limit_in = builder.op("Enter", limit, is_constant=True, **frame)[0]
        merges = []
        for initial in (start, zero):
            entered = builder.op("Enter", initial, **frame)[0]
            merges.append(builder.op("Merge", [entered, builder.later(entered.dtype)]))
        go_on = builder.op("LoopCond", builder.op("Less", merges[1][0], limit_in))
        exits = []
        for number, merge in enumerate(merges):
            switch = builder.op("Switch", merge[0], go_on)
            inside = builder.identity(switch[1])
            following = step(inside) if number == 0 else inside + builder.constant(np.int32(1), control=[inside.node])
            builder.close_loop(merge, builder.op("NextIteration", following)[0])
            exits.append(builder.op("Exit", switch[0])[0])
    return exits[0], exits[1]


def doubling(parallel: int = 10) -> GraphDef:
    """y = x * 2 ** n, counted in c."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", ()), builder.placeholder("n", "int32", ())
    value, count = add_loop(builder, "loop", x, n, lambda v: builder.op("AddV2", v, v)[0], parallel)
    builder.identity(value, name="y", device=cpu(0))
    builder.identity(count, name="c", device=cpu(0))
    return builder.graph_def()


async def run(graph_def: GraphDef, fetches: list[str], feeds: dict[str, Any], **settings: Any) -> list[Any]:
    async with open_session(graph_def, **settings) as session:
        return [value.tolist() for value in await session.run(fetches, feeds)]


@pytest.mark.parametrize("parallel", [1, 2, 10])
@pytest.mark.parametrize("n", [0, 1, 5, 20])
async def test_a_loop_runs_as_often_as_its_condition_says(n: int, parallel: int) -> None:
    assert await run(doubling(parallel), ["y", "c"], {"x": 3.0, "n": n}) == [3.0 * 2**n, n]


async def test_loops_nest() -> None:
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", ()), builder.placeholder("n", "int32", ())
    inner_limit = builder.placeholder("m", "int32", ())

    def body(value: Tensor) -> Tensor:
        limit = builder.op("Enter", inner_limit, frame_name="outer", is_constant=True)[0]
        return add_loop(builder, "inner", value, limit, lambda v: builder.op("AddV2", v, v)[0])[0]

    value, _ = add_loop(builder, "outer", x, n, body)
    builder.identity(value, name="y", device=cpu(0))
    assert await run(builder.graph_def(), ["y"], {"x": 1.0, "n": 3, "m": 2}) == [2.0**6]
    assert await run(builder.graph_def(), ["y"], {"x": 1.0, "n": 3, "m": 0}) == [1.0]


@pytest.mark.parametrize("predicate", [True, False])
async def test_a_loop_in_a_branch_that_is_not_taken_is_dead(predicate: bool) -> None:
    builder = GraphBuilder()
    x, p = builder.placeholder("x", "float32", ()), builder.placeholder("p", "bool", ())
    n = builder.placeholder("n", "int32", ())
    switch, limit = builder.op("Switch", x, p), builder.op("Switch", n, p)[1]
    value, _ = add_loop(builder, "loop", switch[1], limit, lambda v: builder.op("AddV2", v, v)[0])
    builder.op("Merge", [switch[0], value], name="m")
    builder.identity(value, name="inside")
    feeds = {"x": 1.0, "p": predicate, "n": 3}
    assert await run(builder.graph_def(), ["m", "m:1"], feeds) == ([8.0, 1] if predicate else [1.0, 0])
    if not predicate:
        with pytest.raises(InvalidArgumentError, match=r"^Retval\[0\] does not have value"):
            await run(builder.graph_def(), ["inside"], feeds)


@given(st.integers(0, 6), st.integers(1, 3), st.integers(0, 2**32))
def test_the_order_of_ready_nodes_does_not_matter_to_a_loop(n: int, parallel: int, seed: int) -> None:
    builder_graph = GraphBuilder()
    x, limit = builder_graph.placeholder("x", "float32", ()), builder_graph.placeholder("n", "int32", ())
    value, _ = add_loop(builder_graph, "f", x, limit, lambda v: builder_graph.op("AddV2", v, v)[0], parallel)
    graph = builder_graph.graph()
    for node in graph.op_nodes():
        node.assigned_device = cpu(0)
    client = client_graph(graph, ClientRequest(["x", "n"], [value.name], device=cpu(0)))
    binders = {cpu(0): Binder(cpu(0), DeviceState(seed=0))}
    (got,) = run_reference([client], binders, [np.float32(3), np.int32(n)], 1, Random(seed).randrange)
    assert got is not DEAD
    assert got == 3 * 2**n


async def test_a_long_loop_can_be_cancelled_and_gives_other_tasks_their_turn() -> None:
    async with open_session(doubling(), budget_s=0) as session:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run, ["y"], {"x": 1.0, "n": 10_000_000})
                for _ in range(20):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        (got,) = await session.run(["y"], {"x": 1.0, "n": 2})
        assert scope.cancelled_caught
        assert float(got) == 4
