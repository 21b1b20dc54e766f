"""Workers that die or are retired: what fails, what it says, and what goes on."""

from __future__ import annotations

import logging
from itertools import product

import numpy as np
import pytest
import trio

from partita.actors import Session, open_session
from partita.errors import FailedPreconditionError, UnavailableError
from partita.graph.builder import GraphBuilder
from tests.actors.sessions.processes.graphs import doubled, stateful
from tests.actors.sessions.processes.in_memory import memory_workers
from tests.actors.sessions.processes.steps import failing, waiting
from tests.hangs import all_waiting
from tests.strategies import cpu

TWO = np.float32(2)


async def test_a_lost_worker_is_named_with_its_devices_and_what_they_held() -> None:
    """One error for the step; then the devices are hosted by the other worker, without state."""
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        await session.run([], {"x": TWO}, ["set0", "set1"])
        await session.run([], {"x": TWO}, ["put"])
        before = session.cluster.incarnation(cpu(1))
        assert await session.run("taken") == [-2]
        async with failing(session, "taken", UnavailableError) as caught:
            pool.kill("process-1")
        message = caught[0].message
        assert message.startswith(f"worker 1 at memory://1 was lost (the connection broke), and with it {cpu(1)}; ")
        assert "what they held is gone: queues, variables" in message
        assert session.cluster.incarnation(cpu(1)) != before
        assert await session.run("neg0") == [-2]
        with pytest.raises(FailedPreconditionError):
            await session.run("neg1")
        await session.run([], {"x": TWO}, ["set1"])
        assert await session.run("neg1") == [-2]
        await pool.assert_idle()


async def test_a_step_that_does_not_use_the_lost_devices_goes_on() -> None:
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        async with waiting(session, "taken") as fetched:
            builder = GraphBuilder()
            x = builder.placeholder("z", "float32", (), device=cpu(0))
            builder.op("Neg", x, name="own", device=cpu(0))
            await session.extend(builder.graph_def())
            assert await session.run("own", {"z": TWO}) == [-2]
            await session.run([], {"x": TWO}, ["put"])
        assert fetched == [-2]


async def test_a_loss_between_two_steps_needs_no_failure() -> None:
    """The next step prepares its request again."""
    async with memory_workers(3) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        assert await session.run("y", {"x": TWO}) == [-4]
        pool.kill("process-0")
        assert await session.run("y", {"x": TWO}) == [-4]
        call = await session.make_callable("x", "y")
        pool.kill("process-1")
        assert await call(TWO) == [-4]


@pytest.mark.parametrize("ticks", list(product(range(3), range(1, 4), range(3))))
async def test_workers_that_die_one_after_the_other_fail_a_step_or_leave_it_alone(ticks: tuple[int, ...]) -> None:
    """However far a step, the preparation of its request and the way to another worker have come; nothing is left."""
    async with memory_workers(4) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        await session.run("y", {"x": TWO})
        fetched: list[object] = []

        async def run() -> None:
            try:
                fetched.extend(await session.run("y", {"x": TWO}))
            except UnavailableError:
                fetched.append(-4)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            for number, wait in enumerate(ticks):
                for _ in range(wait):
                    await trio.lowlevel.checkpoint()
                pool.kill(f"process-{number}")
        assert fetched == [-4]


async def test_without_a_live_worker_steps_wait_for_a_new_one() -> None:
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        await session.run("y", {"x": TWO})
        for process in list(pool.workers):
            pool.kill(process)
        async with waiting(session, "y", {"x": TWO}) as fetched:
            assert not fetched
            pool.add()
        assert fetched == [-4]


@pytest.mark.parametrize("is_early", [False, True])
async def test_without_a_scheduler_steps_do_not_wait_for_a_worker(is_early: bool) -> None:
    """As long as a worker lives its devices move and steps go on; then each fails, those that wait, too."""
    async with memory_workers(2) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        gone = UnavailableError("the scheduler is gone")
        if is_early:
            pool.end(gone)
        pool.kill("process-0")
        assert await session.run("y", {"x": TWO}) == [-4]
        pool.kill("process-1")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expect_unavailable, session)
            await all_waiting()
            pool.end(gone)
        await expect_unavailable(session)


async def expect_unavailable(session: Session) -> None:
    """A step fails, because no worker will ever join."""
    with pytest.raises(UnavailableError, match="the scheduler is gone"):
        await session.run("y", {"x": TWO})


async def test_a_session_closes_while_it_waits_for_a_worker() -> None:
    async with memory_workers(1) as pool, open_session(doubled(), "cpu:2", workers=pool) as session:
        pool.kill("process-0")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run, "y", {"x": TWO})
                await all_waiting()
                scope.cancel()
        assert session.statistics().steps == 0


async def test_workers_that_lose_each_other_fail_the_step_and_connect_again() -> None:
    """Both live: the step over the two fails, state stays, and the next step is right."""
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        await session.run([], {"x": TWO}, ["set0", "set1"])
        async with failing(
            session, "taken", UnavailableError, match=r"worker [01] at memory://[01] lost the connection to worker [01]"
        ):
            pool.node("process-0").cut("process-1")
        assert await session.run(["neg0", "neg1"]) == [-2, -2]
        await pool.assert_idle()


async def test_a_worker_that_dask_retires_is_drained(caplog: pytest.LogCaptureFixture) -> None:
    """The step under way ends there; variables travel along, a queue does not, and that is said."""
    async with memory_workers(2) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        await session.run([], {"x": TWO}, ["set0", "set1"])
        async with waiting(session, "taken") as fetched:
            handle = await session.partial_run_setup([], ["x"], ["put"])
            pool.retire("process-1")
            await all_waiting()
            assert not fetched
            await session.partial_run(handle, [], {"x": TWO})
        assert fetched == [-2]
        with caplog.at_level(logging.WARNING):
            assert await session.run(["neg0", "neg1"]) == [-2, -2]
        assert not pool.workers["process-1"].hosts[0].actors
        assert "lost: queues" in caplog.text
        await pool.assert_idle()


async def test_a_session_that_disappears_is_cleaned_up() -> None:
    """The worker frees all when the connection breaks, whatever the session thinks."""
    async with memory_workers(1) as pool, open_session(stateful(), "cpu:2", workers=pool) as session:
        async with failing(session, "taken", UnavailableError):
            host = pool.workers["process-0"].hosts[0]
            there = pool.node("process-0").ends[0]
            here = there.other
            there.lose(UnavailableError("the session is gone"))
            await all_waiting()
            assert not host.actors
            assert not host.steps
            assert here is not None
            pool.kill("process-0")
            here.lose(UnavailableError("the connection broke"))
        pool.add()
        await session.run([], {"x": TWO}, ["set0"])
