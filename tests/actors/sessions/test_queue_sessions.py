"""Steps of one session that wait for each other at a queue, on any devices; cancelled, closed, failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, settings, strategies as st

from partita.actors import RunOptions, Session, open_session
from partita.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OutOfRangeError
from partita.graph.builder import GraphBuilder
from partita.graph.dtypes import DataType
from partita.graph.protos import GraphDef
from tests.hangs import JumpingClock, all_waiting
from tests.strategies import cpu

FLOAT = DataType.FLOAT
DEVICES = ("cpu:1", "cpu:3")


def queue_graph(home: int, away: int, capacity: int = 2) -> GraphDef:
    """A queue on device `home`; what is enqueued comes from, and what is dequeued goes to, device `away`."""
    builder = GraphBuilder()
    queue = builder.op(
        "FIFOQueueV2", name="q", component_types=[FLOAT], shapes=[()], capacity=capacity, device=cpu(home)
    )[0]
    x, xs = (builder.placeholder(name, "float32", None, device=cpu(away)) for name in ("x", "xs"))
    n = builder.placeholder("n", "int32", (), device=cpu(away))
    at_home: dict[str, Any] = {"device": cpu(home)}
    builder.op("QueueEnqueueV2", queue, [builder.op("Neg", x, device=cpu(away))[0]], name="put", **at_home)
    builder.op("QueueEnqueueManyV2", queue, [xs], name="put_many", **at_home)
    one = builder.op("QueueDequeueV2", queue, name="one", component_types=[FLOAT], **at_home)[0]
    many = builder.op("QueueDequeueManyV2", queue, n, name="many", component_types=[FLOAT], **at_home)[0]
    for name, value in (("take", one), ("take_many", many)):
        builder.op("Neg", value, name=name, device=cpu(away))
    builder.op("QueueSizeV2", queue, name="size", **at_home)
    builder.op("QueueCloseV2", queue, name="close", **at_home)
    return builder.graph_def()


def places(devices: str) -> tuple[int, int]:
    """Where the queue is, and where its clients are."""
    return (0, 0) if devices == "cpu:1" else (2, 1)


async def check_in_session(devices: str, main: Callable[[Session], Awaitable[None]]) -> None:
    """Runs `main` in a session on a graph with a queue."""
    async with open_session(queue_graph(*places(devices)), devices) as session:
        await main(session)
        assert session.statistics().steps_running == 0


async def put(session: Session, *items: float) -> None:
    for item in items:
        await session.run([], {"x": np.float32(item)}, ["put"])


async def take(session: Session, into: list[float]) -> None:
    into.append(float((await session.run("take"))[0]))


async def take_many(session: Session, count: int, into: list[float]) -> None:
    into += (await session.run("take_many", {"n": np.int32(count)}))[0].tolist()


@pytest.mark.parametrize("devices", DEVICES)
async def test_consumers_wait_for_producers_and_producers_for_room(devices: str) -> None:
    async def main(session: Session) -> None:
        items: list[float] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(put, session, *range(20)))
            await all_waiting()
            assert (await session.run("size"))[0] == 2
            for _ in range(20):
                await take(session, items)
        assert items == list(range(20))

    await check_in_session(devices, main)


@pytest.mark.parametrize("devices", DEVICES)
async def test_a_consumer_that_is_cancelled_takes_nothing(devices: str) -> None:
    async def main(session: Session) -> None:
        items: list[float] = []
        async with trio.open_nursery() as nursery, trio.open_nursery() as given_up:
            given_up.start_soon(take_many, session, 3, items)
            await all_waiting()
            nursery.start_soon(take, session, items)
            await put(session, 1)
            await all_waiting()
            assert items == []
            given_up.cancel_scope.cancel()
        assert items == [1]
        assert (await session.run("size"))[0] == 0

    await check_in_session(devices, main)


@pytest.mark.parametrize("devices", DEVICES)
async def test_closing_a_queue_ends_steps_that_wait_for_it(devices: str) -> None:
    async def main(session: Session) -> None:
        items: list[float] = []
        with pytest.RaisesGroup(OutOfRangeError):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_many, session, 3, items)
                await all_waiting()
                await put(session, 1, 2)
                await session.run([], targets=["close"])
        await take_many(session, 2, items)
        assert items == [1, 2]
        with pytest.raises(CancelledError, match=r"FIFOQueue '_0_q' is closed\."):
            await put(session, 3)

    await check_in_session(devices, main)


@pytest.mark.parametrize("devices", DEVICES)
async def test_a_step_that_waits_too_long_leaves_nothing_behind(devices: str, autojump_clock: JumpingClock) -> None:
    async def main(session: Session) -> None:
        with pytest.raises(DeadlineExceededError):
            await session.run("take", options=RunOptions(timeout_in_ms=500))
        await put(session, 1)
        assert (await session.run("size"))[0] == 1

    await check_in_session(devices, main)


@pytest.mark.parametrize("devices", DEVICES)
async def test_closing_the_session_ends_all_waiting(devices: str) -> None:
    async def main(session: Session) -> None:
        with pytest.RaisesGroup(CancelledError):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take, session, [])
                await all_waiting()
                session.close()

    await check_in_session(devices, main)


async def test_a_waiting_node_ends_when_another_node_of_its_step_fails() -> None:
    builder = GraphBuilder()
    queue = builder.op("FIFOQueueV2", component_types=[FLOAT], shapes=[()], device=cpu(0))[0]
    x = builder.placeholder("x", "float32", (), device=cpu(1))
    builder.op("QueueDequeueV2", queue, component_types=[FLOAT], device=cpu(0), name="take")
    builder.op("CheckNumerics", x, message="", device=cpu(1), name="check")
    builder.op("QueueEnqueueV2", queue, [x], device=cpu(0), name="put")
    builder.op("QueueSizeV2", queue, device=cpu(0), name="size")
    async with open_session(builder.graph_def(), "cpu:2") as session:
        with pytest.raises(InvalidArgumentError):
            await session.run(["take", "check"], {"x": np.float32(np.nan)})
        await session.run([], {"x": np.float32(1)}, ["put"])
        assert (await session.run("size"))[0] == 1


Work = list[tuple[str, int]]
WORK = st.lists(st.tuples(st.sampled_from(["put", "put_many", "take", "take_many"]), st.integers(1, 3)), max_size=12)


@settings(max_examples=40)
@given(WORK, st.sampled_from(DEVICES))
async def test_every_element_is_taken_once_or_still_there(work: Work, devices: str) -> None:
    """Tasks in the order of trio; the last two calls put and take the missing elements, so all tasks end."""
    given_out = sum(n if op == "put_many" else 1 for op, n in work if op.startswith("put"))
    num_wanted = sum(n if op == "take_many" else 1 for op, n in work if op.startswith("take"))

    async def main(session: Session) -> None:
        items: list[float] = []
        numbers = iter(range(1000))
        async with trio.open_nursery() as nursery:
            for op, count in work:
                if op == "put":
                    nursery.start_soon(put, session, next(numbers))
                elif op == "put_many":
                    batch = np.array([next(numbers) for _ in range(count)], np.float32)
                    nursery.start_soon(partial(session.run, [], {"xs": -batch}, ["put_many"]))
                elif op == "take":
                    nursery.start_soon(take, session, items)
                else:
                    nursery.start_soon(take_many, session, count, items)
            await put(session, *[next(numbers) for _ in range(num_wanted - given_out)])
            await take_many(session, max(given_out - num_wanted, 0), items)
        assert sorted(items) == list(range(max(given_out, num_wanted)))

    await check_in_session(devices, main)


async def test_a_handle_is_fed_in_place_of_its_session_tensor() -> None:
    builder = GraphBuilder()
    x = builder.placeholder("x", "float32", (2,), device=cpu(0))
    double = builder.op("AddV2", x, x, name="double", device=cpu(1))[0]
    builder.op("GetSessionHandleV2", double, name="handle", device=cpu(1))
    name = builder.op("GetSessionHandle", double, name="name", device=cpu(1))[0]
    held = builder.placeholder("held", "string", (), device=cpu(0))
    builder.op("GetSessionTensor", held, name="get", dtype=FLOAT, device=cpu(0))
    builder.op("DeleteSessionTensor", held, name="delete", device=cpu(0))
    assert name.node == "name"
    async with open_session(builder.graph_def(), "cpu:2") as session:
        (kept,) = await session.run("handle", {"x": np.array([1, 2], np.float32)})
        kept, by_name = await session.run(["handle", "name"], {"x": kept})
        assert (await session.run("double", {"x": kept}))[0].tolist() == [8, 16]
        assert (await session.run("get", {"held": by_name}))[0].tolist() == [4, 8]
        await session.run([], {"held": by_name}, ["delete"])
        with pytest.raises(InvalidArgumentError, match="is not in the session store"):
            await session.run("get", {"held": by_name})
        with pytest.raises(InvalidArgumentError, match=r"Expects arg\[0\] to be string but float is provided"):
            await session.run("get", {"held": kept})
