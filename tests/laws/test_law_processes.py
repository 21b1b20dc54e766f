"""Law of processes: over worker processes a session gives the values and the errors of one process.

The processes are in memory (`in_memory`), with every message as bytes in between. Steps are cancelled, and workers die,
after a drawn number of scheduler ticks: nothing is left then, and the next step is right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import trio
from hypothesis import given, strategies as st

from partita.actors import open_session
from partita.actors.sessions.session import Session
from partita.errors import CancelledError, InvalidArgumentError, PartitaError, UnavailableError, UnimplementedError
from partita.graph.dtypes import Array
from partita.graph.protos import GraphDef
from tests.actors.graphs import Conditional, conditionals
from tests.actors.programs import Program, programs
from tests.actors.running.function_programs import FunctionProgram, function_programs
from tests.actors.sessions.processes.in_memory import MemoryPool, memory_workers
from tests.laws.test_law7_leaves_nothing import BAD, GOOD, breakable_cases
from tests.laws.test_law_functions import SOFT, three_steps
from tests.runs import HARD_PLACEMENT, assert_same_values, cpus, run_one, values
from tests.strategies import GraphCase, cpu, placed_cases

spreads = st.dictionaries(st.integers(0, 3).map(cpu), st.integers(0, 1))
worker_counts = st.integers(2, 3)


@asynccontextmanager
async def spread_session(
    graph_def: GraphDef, count: int, spread: Mapping[str, int] | None = None, **settings: Any
) -> AsyncIterator[tuple[MemoryPool, Session]]:
    """A session on four CPUs over some workers."""
    async with memory_workers(count) as pool:
        open_ = open_session(graph_def, cpus(4), config=HARD_PLACEMENT, workers=pool, spread=spread, **settings)
        async with open_ as session:
            yield pool, session


@given(placed_cases(), worker_counts, spreads)
async def test_values_are_those_of_one_process(
    placed: tuple[GraphCase, dict[str, str]], count: int, spread: dict[str, int]
) -> None:
    """Wherever the nodes are and whoever hosts their devices; in the second step, too."""
    case, placement = placed
    expected = await values(case.on(placement), case)
    async with spread_session(case.on(placement), count, spread) as (pool, session):
        for _ in range(2):
            assert_same_values(await run_one(session, case.feeds, case.fetches, case.targets), expected)
        await pool.assert_idle()


@given(programs(), worker_counts)
async def test_loops_and_conditionals_are_those_of_one_process(case: Program, count: int) -> None:
    """Live fetches together, dead ones alone."""
    async with open_session(case.graph_def, cpus(4), config=HARD_PLACEMENT) as session:
        expected = [await outcome(session, [name], case.feeds) for name in case.fetches]
    async with spread_session(case.graph_def, count) as (pool, session):
        for name, wanted in zip(case.fetches, expected, strict=True):
            assert_same_outcome(await outcome(session, [name], case.feeds), wanted)
        await pool.assert_idle()


@given(function_programs(conflicting=True), worker_counts, spreads)
async def test_called_functions_are_those_of_one_process(
    case: FunctionProgram, count: int, spread: dict[str, int]
) -> None:
    """Or refused, where their bodies have loops that only one process can interpret: one program in 25."""
    expected = await three_steps(case, case.graph_def, "cpu:4", SOFT)
    async with memory_workers(count) as pool:
        try:
            steps = await three_steps(case, case.graph_def, "cpu:4", SOFT, workers=pool, spread=spread)
        except UnimplementedError as error:
            if "can only be interpreted, by one process" not in error.message:
                raise
        else:
            assert_same_values(steps, expected)


@given(conditionals(), worker_counts)
async def test_dead_tensors_travel(case: Conditional, count: int) -> None:
    async with open_session(case.graph_def, cpus(4), config=HARD_PLACEMENT) as session:
        expected = [await outcome(session, [name], case.feeds) for name in case.fetches]
    async with spread_session(case.graph_def, count) as (_, session):
        for name, wanted in zip(case.fetches, expected, strict=True):
            assert_same_outcome(await outcome(session, [name], case.feeds), wanted)


async def outcome(
    session: Session, fetches: Sequence[str], feeds: Mapping[str, Array], targets: Sequence[str] = ()
) -> list[Array] | PartitaError:
    """What one step gives: values, or the error."""
    try:
        return await session.run(list(fetches), dict(feeds), list(targets))
    except PartitaError as error:
        return error


def assert_same_outcome(ours: list[Array] | PartitaError, theirs: list[Array] | PartitaError) -> None:
    """Equal values, or errors that say the same."""
    if isinstance(theirs, PartitaError):
        assert isinstance(ours, PartitaError)
        assert said(ours) == said(theirs)
    else:
        assert not isinstance(ours, PartitaError), ours
        assert_same_values(ours, theirs)


def said(error: PartitaError) -> tuple[object, ...]:
    """What an error says, without the number of its step."""
    return error.code, error.message, error.node, error.op, error.device, error.function, error.calls


@given(breakable_cases(), worker_counts)
async def test_errors_are_those_of_one_process(breakable: tuple[GraphCase, GraphDef], count: int) -> None:
    """The node that failed, wherever it is; the next step is right, and nothing is left of the failed one."""
    case, graph_def = breakable
    bad = {**case.feeds, "shape:0": BAD}
    expected = await values(graph_def, case)
    with pytest.raises(InvalidArgumentError) as alone:
        await values(graph_def, GraphCase(case.graph_def, bad, case.fetches, case.targets, case.shapes))
    async with spread_session(graph_def, count) as (pool, session):
        with pytest.raises(InvalidArgumentError) as caught:
            await run_one(session, bad, case.fetches, case.targets)
        assert said(caught.value) == said(alone.value)
        assert_same_values(await run_one(session, case.feeds, case.fetches, case.targets), expected)
        await pool.assert_idle()


@given(placed_cases(), worker_counts, st.integers(0, 40))
async def test_a_cancelled_step_leaves_nothing(
    placed: tuple[GraphCase, dict[str, str]], count: int, ticks: int
) -> None:
    """At whatever moment; the next step is right."""
    case, placement = placed
    expected = await values(case.on(placement), case)
    async with spread_session(case.on(placement), count) as (pool, session):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_one, session, case.feeds, case.fetches, case.targets)
            await some_ticks(ticks)
            nursery.cancel_scope.cancel()
        assert session.statistics().steps_running == 0
        assert_same_values(await run_one(session, case.feeds, case.fetches, case.targets), expected)
        await pool.assert_idle()


@given(placed_cases(), worker_counts, st.integers(0, 60), st.integers(0, 2), st.booleans())
async def test_a_step_is_right_or_unavailable_when_a_worker_dies(
    placed: tuple[GraphCase, dict[str, str]], count: int, ticks: int, victim: int, is_prepared: bool
) -> None:
    """At whatever moment a worker dies: one typed error or the values, then the values on those that live."""
    case, placement = placed
    expected = await values(case.on(placement), case)
    async with spread_session(case.on(placement), count) as (pool, session):
        if is_prepared:
            await run_one(session, case.feeds, case.fetches, case.targets)

        async def run() -> None:
            ours = await outcome(session, case.fetches, case.feeds, case.targets)
            if isinstance(ours, PartitaError):
                assert type(ours) is UnavailableError
                assert f"worker {victim % count} at" in ours.message
            else:
                assert_same_values(ours, expected)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await some_ticks(ticks)
            pool.kill(f"process-{victim % count}")
        assert_same_values(await run_one(session, case.feeds, case.fetches, case.targets), expected)
        await pool.assert_idle()


@given(placed_cases(), worker_counts, st.integers(0, 60))
async def test_a_session_may_close_at_any_moment(
    placed: tuple[GraphCase, dict[str, str]], count: int, ticks: int
) -> None:
    """The step is right or cancelled, and nothing is left in the workers."""
    case, placement = placed
    expected = await values(case.on(placement), case)
    async with spread_session(case.on(placement), count) as (pool, session):

        async def run() -> None:
            ours = await outcome(session, case.fetches, case.feeds, case.targets)
            if isinstance(ours, PartitaError):
                assert type(ours) is CancelledError
            else:
                assert_same_values(ours, expected)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await some_ticks(ticks)
            session.close()
        await pool.assert_idle()


async def some_ticks(count: int) -> None:
    """Lets other tasks run so many times."""
    for _ in range(count):
        await trio.lowlevel.checkpoint()


def test_good_and_bad_feeds_differ() -> None:
    assert not np.array_equal(GOOD, BAD)
