"""Calls between trio and asyncio in two threads: each is made once, in order, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Thread, get_ident

import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors.sessions.processes.bridge import LoopBridge


@asynccontextmanager
async def bridged() -> AsyncIterator[LoopBridge]:
    """A bridge to a loop of asyncio that runs in a thread for the length of the block."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield LoopBridge(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        await trio.to_thread.run_sync(thread.join)
        loop.close()


async def done(count: int, calls: list[int]) -> None:
    """Waits until so many calls have been made."""
    while len(calls) < count:
        await trio.lowlevel.checkpoint()


@given(st.lists(st.integers(0, 3), max_size=40))
async def test_calls_are_made_in_order(ticks_before: list[int]) -> None:
    """To the loop and back, whatever ticks lie between."""
    async with bridged() as bridge:
        there: list[int] = []
        back: list[int] = []

        def call(number: int) -> None:
            there.append(number)
            bridge.to_trio(back.append, number)

        for number, ticks in enumerate(ticks_before):
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            bridge.to_loop(call, number)
        await done(len(ticks_before), back)
        assert there == back == list(range(len(ticks_before)))


async def test_calls_of_a_tick_wake_the_loop_once() -> None:
    """All of them are one callback of asyncio."""
    async with bridged() as bridge:
        woken: list[int] = []
        original = bridge.loop.call_soon_threadsafe

        def count(callback: object, *arguments: object) -> object:
            woken.append(1)
            return original(callback, *arguments)  # type: ignore[arg-type]

        bridge.loop.call_soon_threadsafe = count  # type: ignore[method-assign, assignment]
        made: list[int] = []
        tick = bridge.tick
        for number in range(100):
            bridge.to_loop(made.append, number)
        assert bridge.tick == tick
        await done(100, made)
        assert (len(woken), bridge.tick) == (1, tick + 1)
        bridge.loop.call_soon_threadsafe = original  # type: ignore[method-assign]


async def test_a_coroutine_is_awaited_in_the_other_thread() -> None:
    """Its result and its error come out."""

    async def thread_of(number: int) -> tuple[int, int]:
        await asyncio.sleep(0)
        if number < 0:
            raise ValueError("negative")
        return number, get_ident()

    async with bridged() as bridge:
        number, thread = await bridge.run(thread_of, 7)
        assert number == 7
        assert thread != get_ident()
        with pytest.raises(ValueError, match="negative"):
            await bridge.run(thread_of, -1)


async def test_cancelling_cancels_the_coroutine() -> None:
    """The caller waits for its end; a result that was there first is not lost."""
    events: list[str] = []

    async def wait_for_ever() -> None:
        bridge.to_trio(scope.cancel)
        try:
            await asyncio.Event().wait()
        finally:
            events.append("cancelled")

    async def finish_anyway() -> str:
        bridge.to_trio(scope.cancel)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "finished"
        return "never"

    async with bridged() as bridge:
        with trio.CancelScope() as scope:
            await bridge.run(wait_for_ever)
        assert (events, scope.cancelled_caught) == (["cancelled"], True)
        with trio.CancelScope() as scope:
            assert await bridge.run(finish_anyway) == "finished"


async def test_calls_to_a_side_that_has_ended_are_dropped() -> None:
    """A closed loop, and a run of trio that is over."""
    async with bridged() as bridge:
        pass
    bridge.to_loop(events_are_not_made)
    await trio.lowlevel.checkpoint()

    async def open_bridge() -> LoopBridge:
        return LoopBridge(asyncio.new_event_loop())

    over = await trio.to_thread.run_sync(trio.run, open_bridge)
    over.to_trio(events_are_not_made)
    over.loop.close()


def events_are_not_made() -> None:
    """Is never called."""
    raise AssertionError
