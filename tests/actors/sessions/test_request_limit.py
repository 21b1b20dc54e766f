"""A session forgets the requests that it used least recently, never one that runs, and prepares them again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from partita.actors import Session, open_session
from partita.errors import InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.sessions.deployments import Deployment, on_every_deployment
from tests.strategies import cpu

X = np.float32(3)


def squares(count: int) -> GraphDef:
    """y0 = x, and y(k + 1) = x + y(k) on alternating devices; a variable; a queue that is empty."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=cpu(0))
    y = b.op("Identity", x, name="y0", device=cpu(0))[0]
    for k in range(1, count):
        y = b.op("AddV2", x, y, name=f"y{k}", device=cpu(k % 2))[0]
    v = b.variable("v", "float32", ())
    b.op("Assign", v, 0.0, name="set")
    b.op("AssignAdd", v, 1.0, name="add")
    queue = b.op("FIFOQueueV2", component_types=["float32"], name="queue", device=cpu(0))
    b.op("QueueDequeueV2", queue, component_types=["float32"], name="take", device=cpu(0))
    b.op("QueueEnqueueV2", queue, [x], name="put", device=cpu(0))
    return b.graph_def()


def registered(session: Session) -> int:
    """How many graphs the workers hold."""
    return sum(len(worker.graphs._graphs) for worker in session.workers.values())


@settings(max_examples=25)
@given(st.integers(1, 4), st.lists(st.integers(0, 5), max_size=30))
async def test_the_requests_kept_are_those_used_last(limit: int, wanted: list[int]) -> None:
    """As a list by recency says; values do not change; counts of hits and of forgotten requests are exact."""
    recent: OrderedDict[int, None] = OrderedDict()
    hits = forgotten = 0
    async with open_session(squares(6), "cpu:2", max_requests=limit) as session:
        for number in wanted:
            hits += number in recent
            recent[number] = None
            recent.move_to_end(number)
            if len(recent) > limit:
                recent.popitem(last=False)
                forgotten += 1
            assert await session.run(f"y{number}", {"x": X}) == [X * (number + 1)]
            kept = {signature.fetches[0] for signature in session._requests._by_signature}
            assert kept == {f"y{number}" for number in recent}
        statistics = session.statistics()
        counts = statistics.requests, statistics.request_hits, statistics.requests_forgotten
        assert counts == (len(recent), hits, forgotten)
        assert registered(session) == len(recent)


@on_every_deployment
async def test_memory_of_forgotten_requests_is_given_back(deployment: Deployment) -> None:
    """The workers hold no more graphs than requests are kept; state stays."""
    async with deployment.open(squares(40), 2, max_requests=3) as session:
        await session.run((), targets="set")
        call = await session.make_callable((), "add")
        for k in range(40):
            assert await session.run(f"y{k}", {"x": X}) == [X * (k + 1)]
            assert await call() == [k + 1]
        assert session.statistics().requests == 3
        assert registered(session) <= 3 * len(session.workers)


@on_every_deployment
async def test_a_request_that_runs_is_kept(deployment: Deployment) -> None:
    """A step that waits, and a partial run; after them they are as others."""
    async with deployment.open(squares(8), 2, max_requests=1) as session:
        taken: list[Any] = []

        async def take() -> None:
            taken.extend(await session.run("take"))

        handle = await session.partial_run_setup("y1", "x")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
            for k in range(8):
                assert await session.run(f"y{k}", {"x": X}) == [X * (k + 1)]
            assert {signature.fetches for signature in session._requests._by_signature} >= {("take",), ("y1:0",)}
            await session.run((), {"x": X}, "put")
        assert taken == [X]
        assert await session.partial_run(handle, "y1", {"x": X}) == [2 * X]
        assert await session.run("y2", {"x": X}) == [3 * X]
        assert session.statistics().requests == 1


async def test_many_tasks_that_push_each_other_out_all_get_their_values() -> None:
    """While all their requests run the limit does not hold; with the next request it does."""
    async with open_session(squares(12), "cpu:2", max_requests=2, budget_s=0) as session:

        async def run(k: int) -> None:
            for _ in range(3):
                assert await session.run(f"y{k}", {"x": X}) == [X * (k + 1)]

        async with trio.open_nursery() as nursery:
            for k in range(11):
                nursery.start_soon(run, k)
        await run(11)
        assert session.statistics().steps == 36
        assert session.statistics().requests == 2


async def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="max_requests = 0"):
        async with open_session(squares(1), "cpu:2", max_requests=0):
            pass
