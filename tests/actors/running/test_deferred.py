"""Deferred nodes: ended at once, later, from another step or never; dead ones; in loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.sessions.session import Session
from partita.devices.kernels.registry import Call, Construction, Start, table
from partita.errors import InvalidArgumentError, UnavailableError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.actors.running.loops.test_loops import add_loop
from tests.actors.waiting_ops import defer
from tests.strategies import cpu


class Desk:
    """Replaces the kernels of Abs and Assert; their calls wait here, in order, for the test."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Call, tuple[Any, ...]]] = []
        self.cancelled = 0
        self.at_once = False

    def factory(self, _node: Construction) -> Start:
        def start(call: Call, *inputs: Any) -> None:
            entry = call, inputs
            if self.at_once:
                call.done(*inputs)
            else:
                self.waiting.append(entry)
                call.on_cancel(partial(self.cancel, entry))

        return start

    def cancel(self, entry: tuple[Call, tuple[Any, ...]]) -> None:
        self.waiting.remove(entry)
        self.cancelled += 1

    async def next(self) -> tuple[Call, tuple[Any, ...]]:
        """The first call, once there is one."""
        while not self.waiting:
            await trio.lowlevel.checkpoint()
        return self.waiting.pop(0)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk()
    defer(monkeypatch, desk.factory, "Abs", "Assert")
    yield desk
    assert not desk.waiting


def later(where: int = 0) -> GraphDef:
    """y = -Abs(x) with Abs on a device of its own; z = x after Assert(p)."""
    builder = GraphBuilder()
    x, p = builder.placeholder("x", "float32", (), device=cpu(0)), builder.placeholder("p", "bool", (), device=cpu(0))
    builder.op("Neg", builder.op("Abs", x, name="wait", device=cpu(where))[0], name="y", device=cpu(0))
    switch = builder.op("Switch", x, p, name="s", device=cpu(0))
    builder.op("Merge", [switch[0], builder.op("Abs", switch[1], device=cpu(where))[0]], name="m", device=cpu(0))
    nothing = builder.op("Assert", p, [x], name="nothing", device=cpu(where))
    builder.op("Identity", x, name="z", control=[nothing], device=cpu(0))
    return builder.graph_def()


async def take(session: Session, fetch: str, fetched: list[Any], **feeds: Any) -> None:
    """Runs a step and appends its fetches."""
    fetched += await session.run(fetch, feeds)


@pytest.mark.parametrize("where", [0, 1])
async def test_outputs_may_come_at_once(desk: Desk, where: int) -> None:
    desk.at_once = True
    async with open_session(later(where), "cpu:2") as session:
        assert await session.run(["y", "m"], {"x": 2.0, "p": True}) == [-2, 2]


@pytest.mark.parametrize("where", [0, 1])
async def test_outputs_may_come_later_and_steps_overtake_each_other(desk: Desk, where: int) -> None:
    first: list[Any] = []
    second: list[Any] = []
    async with open_session(later(where), "cpu:2") as session, trio.open_nursery() as nursery:
        nursery.start_soon(partial(take, session, "y", first, x=1.0))
        (call, (value,)) = await desk.next()
        nursery.start_soon(partial(take, session, "y", second, x=2.0))
        (other, (two,)) = await desk.next()
        assert call.step is not other.step
        other.done(two * 10)  # said from outside of any step
        while not second:
            await trio.lowlevel.checkpoint()
        assert not first
        call.done(value)
        call.done(value * 100)  # the call is over: nobody hears this
    assert (first, second) == ([-1], [-20])


@pytest.mark.parametrize("where", [0, 1])
async def test_a_call_that_fails_ends_its_step(desk: Desk, where: int) -> None:
    async with open_session(later(where), "cpu:2") as session, trio.open_nursery() as nursery:

        async def run() -> None:
            with pytest.raises(UnavailableError) as caught:
                await session.run("y", {"x": 1.0})
            assert (caught.value.node, caught.value.op, caught.value.device) == ("wait", "Abs", cpu(where))

        nursery.start_soon(run)
        call, _ = await desk.next()
        call.fail(UnavailableError("gone"))
        call.done(np.float32(1))


async def test_a_step_that_ends_tells_those_who_keep_it_waiting(desk: Desk) -> None:
    async with open_session(later(1), "cpu:2") as session:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run, "y", {"x": 1.0})
            while not desk.waiting:
                await trio.lowlevel.checkpoint()
            call, _ = desk.waiting[0]
            nursery.cancel_scope.cancel()
        assert (desk.cancelled, desk.waiting) == (1, [])
        call.done(np.float32(1))
        call.fail(UnavailableError("too late"))
        desk.at_once = True
        assert await session.run("y", {"x": 3.0}) == [-3]


@pytest.mark.parametrize("where", [0, 1])
async def test_a_dead_node_is_not_started(desk: Desk, where: int) -> None:
    async with open_session(later(where), "cpu:2") as session:
        assert await session.run("m", {"x": 2.0, "p": False}) == [2]
        assert not desk.waiting


@pytest.mark.parametrize("where", [0, 1])
async def test_what_waits_for_a_node_without_outputs_waits(desk: Desk, where: int) -> None:
    fetched: list[Any] = []
    async with open_session(later(where), "cpu:2") as session, trio.open_nursery() as nursery:
        nursery.start_soon(partial(take, session, "z", fetched, x=4.0, p=True))
        call, inputs = await desk.next()
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert (fetched, inputs) == ([], (True, 4))
        call.done()
    assert fetched == [4]


@pytest.mark.parametrize("where", [0, 1])
async def test_a_loop_waits_in_every_iteration(desk: Desk, where: int) -> None:
    """Also a loop on one device, which then runs by messages."""
    builder = GraphBuilder()
    x, n = builder.placeholder("x", "float32", ()), builder.placeholder("n", "int32", ())

    def body(value: Any) -> Any:
        return builder.op("Abs", value, device=cpu(where))[0]

    value, _ = add_loop(builder, "loop", x, n, body)
    builder.identity(value, name="y", device=cpu(0))
    fetched: list[Any] = []
    async with open_session(builder.graph_def(), "cpu:2") as session, trio.open_nursery() as nursery:
        nursery.start_soon(partial(take, session, "y", fetched, x=1.0, n=3))
        for _ in range(3):
            call, (value,) = await desk.next()
            call.done(value + value)
    assert fetched == [8]


async def test_a_kernel_that_raises_when_started_fails_the_step(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(call: Call, value: Any) -> None:
        raise InvalidArgumentError("not today")

    monkeypatch.setitem(table(), "Abs", lambda _node: refuse)
    async with open_session(later(), "cpu:1") as session:
        with pytest.raises(InvalidArgumentError, match="not today") as caught:
            await session.run("y", {"x": 1.0})
        assert caught.value.node == "wait"


async def test_a_callback_that_is_registered_too_late_is_called_at_once(desk: Desk) -> None:
    """The step has failed before the kernel calls `on_cancel`; an exception of the callback does no harm."""
    async with open_session(later().SerializeToString(), "cpu:1") as session:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(take, session, "y", [], x=1.0))
                call, _ = await desk.next()
                scope.cancel()
        told: list[str] = []
        call.on_cancel(partial(told.append, "late"))
        assert told == ["late"]
        call.done(np.float32(1))  # heard by nobody


async def test_what_a_cancelled_kernel_raises_keeps_nobody_waiting(desk: Desk) -> None:
    """All other callbacks are called, and the step's error has a note about the exception."""
    async with open_session(later(), "cpu:1") as session:
        told: list[str] = []

        async def step() -> None:
            with pytest.raises(UnavailableError, match="gave up") as caught:
                await session.run(["y", "m", "z"], {"x": 1.0, "p": True})
            assert any("its kernel raised ZeroDivisionError" in note for note in caught.value.__notes__)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(step)
            (first, _), (second, _), (third, _) = [await desk.next() for _ in range(3)]
            first.on_cancel(lambda: 1 // 0)  # type: ignore[arg-type]  # it never returns
            second.on_cancel(partial(told.append, "second"))
            third.fail(UnavailableError("gave up"))
        assert told == ["second"]
