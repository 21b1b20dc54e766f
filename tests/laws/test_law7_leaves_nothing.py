"""Law 7: after an error or a cancel at any point no task, no waiter and no tensor is left, and the next step works.

Flows in: random placed graphs with one node that can be made to fail, and the number of scheduler ticks after which a
step is cancelled. The budget is zero, so that a step has as many points to be cancelled at as it can have.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.actors import session as session_module
from partita.actors.session import Session, open_session
from partita.errors import CancelledError, InvalidArgumentError
from partita.graph.attrs import encode
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import GraphDef
from tests.runs import HARD_PLACEMENT, IDLE_TINY_S, Watch, assert_same_values, cpus, run_one, run_to_the_end
from tests.strategies import GraphCase, cpu, placed_cases

NOTHING = {"waiters": 0, "queued": 0}
GOOD, BAD = np.array([1, -1], np.int32), np.array([7, -1, 7], np.int32)


@st.composite
def breakable_cases(draw: st.DrawFn) -> tuple[GraphCase, GraphDef]:
    """A case whose graph has a Reshape that fails when `shape:0` is fed BAD, before or after any other node."""
    case, placement = draw(placed_cases())
    graph_def = case.on(placement)
    victim = draw(st.sampled_from(sorted(case.shapes)))
    device = cpu(draw(st.integers(0, 3)))
    shape = graph_def.node.add(name="shape", op="Placeholder", device=device)
    shape.attr["dtype"].CopyFrom(encode(DataType.INT32, "type"))
    reshape = graph_def.node.add(name="breakable", op="Reshape", input=[victim, "shape"], device=device)
    reshape.attr["T"].CopyFrom(encode(DataType.FLOAT, "type"))
    reshape.attr["Tshape"].CopyFrom(encode(DataType.INT32, "type"))
    targets = [*case.targets, "breakable"]
    return replace(case, feeds={**case.feeds, "shape:0": GOOD}, targets=tuple(targets)), graph_def


def broken(case: GraphCase) -> GraphCase:
    """The request that fails."""
    return replace(case, feeds={**case.feeds, "shape:0": BAD})


@asynccontextmanager
async def watched_session(graph_def: GraphDef, watch: Watch) -> AsyncIterator[Session]:
    """A session whose rendezvous are watched and whose steps give way after every instruction."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "LocalRendezvous", watch)
        async with open_session(graph_def, cpus(4), config=HARD_PLACEMENT, budget_s=0.0) as session:
            yield session


async def run_case(session: Session, case: GraphCase) -> list[Array]:
    """One step."""
    return await run_one(session, case.feeds, case.fetches, case.targets)


def living_tasks() -> int:
    """Tasks of the running loop."""
    return trio.lowlevel.current_statistics().tasks_living


async def check_fail_then_work(case: GraphCase, graph_def: GraphDef) -> None:
    """A good step, a failing one, a good one."""
    watch = Watch()
    async with watched_session(graph_def, watch) as session:
        before = await run_case(session, case)
        tasks = living_tasks()
        with pytest.raises(InvalidArgumentError) as caught:
            await run_case(session, broken(case))
        assert caught.value.node == "breakable"
        assert living_tasks() == tasks
        assert watch.left_behind() == NOTHING
        assert_same_values(await run_case(session, case), before)
    assert watch.left_behind() == NOTHING


async def check_cancel_then_work(case: GraphCase, graph_def: GraphDef, ticks: int) -> None:
    """A step that is cancelled after some turns of the scheduler, then a good one."""
    watch = Watch()
    async with watched_session(graph_def, watch) as session:
        tasks = living_tasks()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_case, session, case)
            for _ in range(ticks):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert living_tasks() == tasks
        assert watch.left_behind()["waiters"] == 0
        first = await run_case(session, case)
        assert_same_values(await run_case(session, case), first)
    assert watch.left_behind() == NOTHING


async def check_close_under_a_step(case: GraphCase, graph_def: GraphDef, ticks: int) -> None:
    """A session that is closed while a step runs: the step ends, by its own or with CancelledError."""
    watch = Watch()
    tasks = living_tasks()
    ended: list[str] = []

    async def step(session: Session) -> None:
        try:
            await run_case(session, case)
            ended.append("done")
        except CancelledError:
            ended.append("cancelled")

    async with trio.open_nursery() as nursery, watched_session(graph_def, watch) as session:
        nursery.start_soon(step, session)
        for _ in range(ticks):
            await trio.lowlevel.checkpoint()
    assert len(ended) == 1
    assert living_tasks() == tasks
    assert watch.left_behind() == NOTHING


@given(breakable_cases())
def test_an_error_leaves_nothing(breakable: tuple[GraphCase, GraphDef]) -> None:
    """The error names its node, everything else of the step is gone, the next step gives what the first one gave."""
    run_to_the_end(check_fail_then_work, *breakable, idle_s=IDLE_TINY_S)


@given(breakable_cases(), st.integers(0, 30), st.random_module())
def test_a_cancel_leaves_nothing(breakable: tuple[GraphCase, GraphDef], ticks: int, seed: object) -> None:
    """The same after a cancel, at whatever tick it comes."""
    assert seed
    run_to_the_end(check_cancel_then_work, *breakable, ticks, idle_s=IDLE_TINY_S)


@given(breakable_cases(), st.integers(0, 30), st.random_module())
def test_closing_ends_steps_under_way(breakable: tuple[GraphCase, GraphDef], ticks: int, seed: object) -> None:
    """A step under way never outlives its session, and never hangs."""
    assert seed
    run_to_the_end(check_close_under_a_step, *breakable, ticks, idle_s=IDLE_TINY_S)


@settings(max_examples=20)  # each one collects garbage twice, which is what takes the time
@given(breakable_cases())
def test_tensors_die_with_their_step(breakable: tuple[GraphCase, GraphDef]) -> None:
    """Of what was sent only constants, which belong to the plan, outlive a step, failed or not."""
    case, graph_def = breakable

    async def main() -> None:
        watch = Watch()
        async with watched_session(graph_def, watch) as session:
            await run_case(session, case)
            with pytest.raises(InvalidArgumentError):
                await run_case(session, broken(case))
            kept = watch.living_tensors()
            for request in (case, broken(case), case):
                with contextlib.suppress(InvalidArgumentError):
                    await run_case(session, request)
            assert watch.living_tensors() <= kept

    run_to_the_end(main, idle_s=IDLE_TINY_S)
