"""Threads of sessions are counted by limiters of their own, and a clock that jumps gets none."""

from __future__ import annotations

import numpy as np
import pytest
import trio

from partita.actors import open_session
from partita.actors.running.threads import run_in_thread
from partita.graph.builder import GraphBuilder
from partita.graph.protos import GraphDef
from tests.hangs import JumpingClock


def long_chain(length: int = 600) -> GraphDef:
    """A graph that is read and prepared in a thread."""
    b = GraphBuilder()
    y = b.placeholder("x", "float32")
    for number in range(length):
        y = b.op("Neg", y, name=f"y{number}")[0]
    b.op("Identity", y, name="last")
    return b.graph_def()


async def test_a_host_may_use_up_the_threads_of_trio() -> None:
    """Every thread of trio's default limiter waits for a step, which is prepared in a thread."""
    threads = trio.to_thread.current_default_thread_limiter()
    results: list[float] = []
    async with open_session(long_chain(), "cpu:2") as session:

        def step_from_a_thread() -> None:
            (got,) = trio.from_thread.run(session.run, "last", {"x": np.float32(3)})
            results.append(float(got))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "total_tokens", 2)
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(trio.to_thread.run_sync, step_from_a_thread)
    assert results == [3.0] * 4


async def test_a_clock_that_jumps_stands_still_while_a_step_is_prepared(autojump_clock: JumpingClock) -> None:
    """Under an autojump clock no time passes: neither graphs nor kernels use a thread, for which tasks would wait."""
    began_s = trio.current_time()
    async with open_session(long_chain(), "cpu:1", budget_s=0, thread_limit_s=0) as session:
        for _ in range(4):
            (got,) = await session.run("last", {"x": np.ones(4, np.float32)})
            assert got.tolist() == [1] * 4
    assert trio.current_time() == began_s


async def test_few_threads_run_python_at_once() -> None:
    """Further ones wait: each takes the interpreter from the loop for milliseconds at a time."""
    running = most = 0
    entered = trio.Event()

    def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        trio.from_thread.run_sync(entered.set)
        trio.from_thread.run(trio.lowlevel.checkpoint)
        running -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(run_in_thread, work)
    assert 1 <= most <= 2
