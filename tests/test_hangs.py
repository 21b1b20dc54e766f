"""A test that would wait for ever fails; a test that something will wake does not."""

from __future__ import annotations

from functools import partial
from threading import Event, Thread

import pytest
import trio
import trio.lowlevel
import trio.testing
from trio.testing import MockClock

from tests.hangs import Hung, JumpingClock, all_waiting, never_hangs


@never_hangs
async def waits_for_nobody() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.Event().wait, name="stuck")
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("clock", [None, MockClock(), MockClock(autojump_threshold=0), JumpingClock()])
def test_a_test_that_nothing_can_wake_fails_and_names_who_waits(clock: MockClock | None) -> None:
    """Under a real clock, one that stands, and those that jump."""
    with pytest.raises(Hung, match=r"^nothing will ever wake stuck; .*waits_for_nobody at test_hangs\.py:\d+$"):
        trio.run(waits_for_nobody, clock=clock)


async def test_virtual_time_goes_on_when_nothing_else_can_happen(autojump_clock: JumpingClock) -> None:
    """Deadline by deadline, and not while a thread is at work, however long that takes."""
    order: list[tuple[str, float]] = []

    async def note(name: str, seconds: float) -> None:
        await trio.sleep(seconds)
        order.append((name, trio.current_time()))

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note, "late", 1e6)
        nursery.start_soon(note, "early", 10.0)
        await trio.to_thread.run_sync(partial(Event().wait, 0.05))
        assert trio.current_time() == start
    assert order == [("early", start + 10), ("late", start + 1e6)]


async def test_all_wait_only_after_the_threads_are_done() -> None:
    async with trio.open_nursery() as nursery:
        done = trio.Event()

        async def work() -> None:
            await trio.to_thread.run_sync(partial(Event().wait, 0.05))
            done.set()
            await trio.sleep_forever()

        nursery.start_soon(work)
        await all_waiting()
        assert done.is_set()
        nursery.cancel_scope.cancel()


async def test_what_a_thread_or_an_idle_loop_or_the_time_is_going_to_wake_does_not_hang() -> None:
    await trio.to_thread.run_sync(partial(Event().wait, 0.01))
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(0.01)
    left, right = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(left.send_all, b"x")
        assert await right.receive_some() == b"x"


async def test_what_another_thread_has_posted_counts() -> None:
    """The thread posts while the loop is about to sleep; a task waits for it in a worker thread until then."""
    arrived, token = trio.Event(), trio.lowlevel.current_trio_token()
    thread = Thread(target=token.run_sync_soon, args=[arrived.set])
    thread.start()
    await trio.to_thread.run_sync(thread.join)
    await arrived.wait()
    assert arrived.is_set()
