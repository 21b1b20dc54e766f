"""After an error or a cancellation at any await nothing of a step is left, and the session can be used."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from partita.actors import Session, open_session
from partita.actors.sessions import workers
from partita.devices.kernels import registry
from partita.errors import CancelledError, InvalidArgumentError
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from partita.rendezvous import LocalRendezvous
from tests.strategies import cpu

pytestmark = pytest.mark.usefixtures("quick_collections")

DEVICES = 3


class Traces:
    """Keeps every rendezvous, and weak references to every output of Neg."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.meetings: list[LocalRendezvous] = []
        self.tensors: list[weakref.ref[Any]] = []
        assert registry.lookup("Neg") is not None  # loads the kernels before one is replaced
        monkeypatch.setattr(workers, "LocalRendezvous", self._meeting)
        monkeypatch.setitem(registry._FACTORIES, "Neg", lambda _node: self._negate)

    def _meeting(self) -> LocalRendezvous:
        self.meetings.append(LocalRendezvous())
        return self.meetings[-1]

    def _negate(self, value: Any) -> Any:
        result = np.negative(value)
        self.tensors.append(weakref.ref(result))
        return result

    def assert_nothing_left(self) -> None:
        """No waiter, message or tensor is left."""
        statistics = [meeting.statistics() for meeting in self.meetings]
        assert sum(s.waiting + s.queued for s in statistics) == 0
        self.meetings.clear()  # they hold the errors that ended them, and those the frames they were raised in
        gc.collect()
        assert [ref() for ref in self.tensors if ref() is not None] == []


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Traces:
    return Traces(monkeypatch)


def zigzag(length: int = 6, devices: int = DEVICES) -> GraphDef:
    """x -> n0 -> n1 ... alternating over the devices, then a Reshape that fails for every size but two."""
    builder = GraphBuilder()
    value = builder.placeholder("x", "float32", device=cpu(0))
    for i in range(length):
        value = builder.op("Neg", value, name=f"n{i}", device=cpu(i % devices))[0]
    builder.op("Reshape", value, builder.constant([2], device=cpu(0)), name="two", device=cpu(length % devices))
    return builder.graph_def()


TWO, THREE = np.ones(2, np.float32), np.ones(3, np.float32)


async def works(session: Session) -> None:
    """A step that must succeed."""
    (got,) = await session.run("two", {"x": TWO})
    assert got.tolist() == [1, 1]


async def after(ticks: int, do: Callable[[], None]) -> None:
    """Calls `do` after other tasks have run this many times."""
    for _ in range(ticks):
        await trio.lowlevel.checkpoint()
    do()


async def side_by_side(*jobs: Callable[[], Awaitable[None]]) -> None:
    """Runs jobs at the same time and waits for all of them."""
    async with trio.open_nursery() as nursery:
        for job in jobs:
            nursery.start_soon(job)


@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_a_failed_step_leaves_nothing(traces: Traces, devices: int) -> None:
    """Without worker threads, which may let go of what they have run a moment after they have said that it has."""
    settings: dict[str, Any] = {"budget_s": 60, "thread_limit_s": 60}
    async with open_session(zigzag(devices=devices), f"cpu:{devices}", **settings) as session:
        for _ in range(3):
            with pytest.raises(InvalidArgumentError, match="Input to reshape"):
                await session.run("two", {"x": THREE})
            traces.assert_nothing_left()
            await works(session)
        assert session.statistics().steps_running == 0


@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_a_step_cancelled_at_any_await_leaves_nothing(traces: Traces, devices: int) -> None:
    """With budget zero the step yields after every chunk; it is cancelled after 0, 1, 2 ... turns of the event loop."""

    async def cancelled(session: Session, ticks: int) -> bool:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(after, ticks, scope.cancel)
                await works(session)
                nursery.cancel_scope.cancel()
        return scope.cancelled_caught

    async with open_session(zigzag(8, devices), f"cpu:{devices}", budget_s=0) as session:
        await works(session)  # and halves the chunk of a single device, which is too slow for no budget at all
        ticks = 0
        while await cancelled(session, ticks):
            await wait_all_tasks_blocked()  # actors drop the messages of the step when they reach them
            traces.assert_nothing_left()
            ticks += 1
        await works(session)
        assert ticks > 2


async def test_steps_of_several_tasks_run_side_by_side(traces: Traces) -> None:
    finished: list[float] = []

    async def step(session: Session, value: float) -> None:
        (got,) = await session.run("n5", {"x": np.full(2, value, np.float32)})
        assert got.tolist() == [value, value]
        finished.append(value)

    async with open_session(zigzag(), f"cpu:{DEVICES}", budget_s=0) as session:
        await side_by_side(*[partial(step, session, float(i)) for i in range(5)])
    assert sorted(finished) == [0, 1, 2, 3, 4]
    traces.assert_nothing_left()


async def test_one_failing_step_does_not_disturb_another(traces: Traces) -> None:
    async def fails(session: Session) -> None:
        with pytest.raises(InvalidArgumentError):
            await session.run("two", {"x": THREE})

    async with open_session(zigzag(), f"cpu:{DEVICES}", budget_s=0) as session:
        await side_by_side(*[partial(job, session) for job in (fails, works) * 3])
    traces.assert_nothing_left()


@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_closing_the_session_fails_the_steps_under_way(traces: Traces, devices: int) -> None:
    async with open_session(zigzag(200, devices), f"cpu:{devices}", budget_s=0) as session:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(after, 3, session.close)
            with pytest.raises(CancelledError, match=r"^Session has been closed"):
                await session.run("two", {"x": TWO})
        with pytest.raises(CancelledError, match=r"^Session has been closed"):
            await works(session)
    traces.assert_nothing_left()


@pytest.mark.parametrize("devices", [1, DEVICES])
async def test_other_tasks_get_their_turn_during_a_step(devices: int) -> None:
    turns = 0

    async def others(task_status: trio.TaskStatus[None]) -> None:
        nonlocal turns
        task_status.started()
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    opened = open_session(zigzag(300, devices), f"cpu:{devices}", budget_s=0)
    async with opened as session, trio.open_nursery() as nursery:
        await nursery.start(others)
        await works(session)
        nursery.cancel_scope.cancel()
    assert turns > devices


async def test_a_loop_of_short_steps_does_not_starve_other_tasks() -> None:
    async with open_session(zigzag(2, 1), budget_s=0) as session, trio.open_nursery() as nursery:
        nursery.start_soon(after, 10, nursery.cancel_scope.cancel)
        for _ in range(1000):  # the other task needs ten turns
            await works(session)
    assert 1 < session.statistics().steps < 1000


async def test_short_steps_over_many_devices_need_no_task_switch() -> None:
    class Count(trio.abc.Instrument):
        switches = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.switches += 1

    count = Count()
    trio.lowlevel.add_instrument(count)
    async with open_session(zigzag(), f"cpu:{DEVICES}", budget_s=60, thread_limit_s=60) as session:
        await works(session)
        before = count.switches
        for _ in range(10):
            await works(session)
        assert count.switches == before
