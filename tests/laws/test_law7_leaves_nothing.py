"""Law 7: after an error or a cancellation at any point no task, waiter or tensor is left, and the next step works.

Random placed graphs get one node that can fail; steps are cancelled after a drawn number of scheduler ticks. The budget
is zero, so a step yields, and can be cancelled, after every chunk.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import trio
from hypothesis import given, settings, strategies as st

from partita.actors.sessions import workers
from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.errors import CancelledError, InvalidArgumentError, PartitaError
from partita.graph.attrs import encode
from partita.graph.dtypes import Array, DataType
from partita.graph.protos import GraphDef
from partita.graph.tensor import numpy_to_tensor
from tests.runs import HARD_PLACEMENT, Watch, assert_same_values, cpus, run_one
from tests.strategies import GraphCase, cpu, placed_cases

pytestmark = pytest.mark.usefixtures("quick_collections")

NOTHING = {"waiters": 0, "queued": 0}
GOOD, BAD = np.array([1, -1], np.int32), np.array([7, -1, 7], np.int32)
Clock = Literal["real", "virtual"]
CLOCKS = ("real", "virtual")


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


def add_counter(graph_def: GraphDef, device: str) -> None:
    """Adds a variable `count`, `zero` which sets it, and `more` which adds one to it once `breakable` has run."""
    attrs = {"dtype": encode(DataType.FLOAT, "type")}
    for name, op, inputs in (
        ("handle", "VarHandleOp", []),
        ("nought", "Const", []),
        ("one", "Const", []),
        ("zero", "AssignVariableOp", ["handle", "nought"]),
        ("more", "AssignAddVariableOp", ["handle", "one", "^breakable"]),
        ("count", "ReadVariableOp", ["handle"]),
    ):
        node = graph_def.node.add(name=name, op=op, input=inputs, device=device)
        for key, value in attrs.items():
            node.attr[key].CopyFrom(value)
        if op == "Const":
            node.attr["value"].tensor.CopyFrom(numpy_to_tensor(np.array(name == "one", np.float32)))
        if op == "VarHandleOp":
            node.attr["shape"].CopyFrom(encode((), "shape"))


def broken(case: GraphCase) -> GraphCase:
    """The request that fails."""
    return replace(case, feeds={**case.feeds, "shape:0": BAD})


@asynccontextmanager
async def watched_session(graph_def: GraphDef, watch: Watch, clock: Clock = "real") -> AsyncIterator[Session]:
    """A session whose rendezvous are watched and whose steps yield after every chunk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "LocalRendezvous", watch)
        async with open_session(graph_def, cpus(4), config=HARD_PLACEMENT, budget_s=0.0, clock=clock) as session:
            yield session


async def run_case(session: Session, case: GraphCase) -> list[Array]:
    """One step."""
    return await run_one(session, case.feeds, case.fetches, case.targets)


def living_tasks() -> int:
    """The number of tasks of the event loop."""
    return trio.lowlevel.current_statistics().tasks_living


async def check_fail_then_work(case: GraphCase, graph_def: GraphDef, clock: Clock) -> None:
    """A good step, a failing one, a good one."""
    watch = Watch()
    async with watched_session(graph_def, watch, clock) as session:
        before = await run_case(session, case)
        tasks = living_tasks()
        with pytest.raises(InvalidArgumentError) as caught:
            await run_case(session, broken(case))
        assert caught.value.node == "breakable"
        assert living_tasks() == tasks
        assert watch.left_behind() == NOTHING
        assert_same_values(await run_case(session, case), before)
    assert watch.left_behind() == NOTHING


async def check_cancel_then_work(case: GraphCase, graph_def: GraphDef, ticks: int, clock: Clock) -> None:
    """A step that is cancelled after some turns of the scheduler, then a good one."""
    watch = Watch()
    async with watched_session(graph_def, watch, clock) as session:
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


async def check_close_under_a_step(case: GraphCase, graph_def: GraphDef, ticks: int, clock: Clock) -> None:
    """A session is closed while a step runs: the step ends with a result or with CancelledError."""
    watch = Watch()
    tasks = living_tasks()
    ended: list[str] = []

    async def step(session: Session) -> None:
        try:
            await run_case(session, case)
            ended.append("done")
        except CancelledError:
            ended.append("cancelled")

    async with trio.open_nursery() as nursery, watched_session(graph_def, watch, clock) as session:
        nursery.start_soon(step, session)
        for _ in range(ticks):
            await trio.lowlevel.checkpoint()
    assert len(ended) == 1
    assert living_tasks() == tasks
    assert watch.left_behind() == NOTHING


@pytest.mark.parametrize("clock", CLOCKS)
@given(breakable=breakable_cases())
async def test_an_error_leaves_nothing(breakable: tuple[GraphCase, GraphDef], clock: Clock) -> None:
    """The error names its node, nothing of the step is left, and the next step gives the values of the first."""
    await check_fail_then_work(*breakable, clock)


FAULTS: dict[str, tuple[Callable[[GraphCase], GraphCase], str]] = {
    "kernel": (broken, "INVALID_ARGUMENT"),
    "type of a feed": (lambda c: replace(c, feeds={**c.feeds, "shape:0": np.ones(2)}), "INVALID_ARGUMENT"),
    "feed left out": (
        lambda c: replace(c, feeds={name: value for name, value in c.feeds.items() if name != "shape:0"}),
        "INVALID_ARGUMENT",
    ),
    "unknown feed": (lambda c: replace(c, feeds={**c.feeds, "nobody:0": GOOD}), "INVALID_ARGUMENT"),
    "unknown fetch": (lambda c: replace(c, fetches=(*c.fetches, "nobody:0")), "INVALID_ARGUMENT"),
    "no such output": (lambda c: replace(c, fetches=(*c.fetches, "count:7")), "OUT_OF_RANGE"),
    "unknown target": (lambda c: replace(c, targets=(*c.targets, "nobody")), "NOT_FOUND"),
}


async def check_faults_change_nothing(case: GraphCase, graph_def: GraphDef, faults: list[str]) -> None:
    """Good steps add one to a variable; faulty steps raise the expected code and add nothing."""
    watch, counting = Watch(), replace(case, targets=(*case.targets, "more"))
    async with watched_session(graph_def, watch) as session:
        await session.run([], targets=["zero"])
        tasks, first = living_tasks(), await run_case(session, counting)
        for good_steps, fault in enumerate(faults, 1):
            inject, code = FAULTS[fault]
            with pytest.raises(PartitaError) as caught:
                await run_case(session, inject(counting))
            assert caught.value.code == code
            assert living_tasks() == tasks
            assert watch.left_behind() == NOTHING
            assert await session.run("count") == [good_steps]
            assert_same_values(await run_case(session, counting), first)


@settings(max_examples=25)  # each one prepares up to nine requests
@given(breakable_cases(), st.integers(0, 3), st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=4))
async def test_variables_are_as_the_last_good_step_left_them(
    breakable: tuple[GraphCase, GraphDef], device: int, faults: list[str]
) -> None:
    """A failing or refused request does not change a variable that is updated after the failing node."""
    case, graph_def = breakable
    add_counter(graph_def, cpu(device))
    await check_faults_change_nothing(case, graph_def, faults)


@given(breakable_cases())
async def test_an_error_says_where(breakable: tuple[GraphCase, GraphDef]) -> None:
    """A kernel's error has node, op, device, inputs and step; a refused feed is named."""
    case, graph_def = breakable
    async with open_session(graph_def, cpus(4), config=HARD_PLACEMENT) as session:
        with pytest.raises(InvalidArgumentError) as caught:
            await run_case(session, broken(case))
        node = next(node for node in graph_def.node if node.name == "breakable")
        error, inputs = caught.value, [name.removesuffix(":0") for name in node.input]
        assert (error.node, error.op, error.device, error.step) == ("breakable", "Reshape", node.device, 1)
        assert error.inputs == inputs
        assert all(repr(name) in str(error) for name in ("breakable", "Reshape", node.device, *inputs))
        with pytest.raises(InvalidArgumentError, match="'shape:0'"):
            await run_case(session, FAULTS["type of a feed"][0](case))


@pytest.mark.parametrize("clock", CLOCKS)
@given(breakable=breakable_cases(), ticks=st.integers(0, 30), seed=st.random_module())
async def test_a_cancel_leaves_nothing(
    breakable: tuple[GraphCase, GraphDef], ticks: int, seed: object, clock: Clock
) -> None:
    """The same after a cancellation, at any tick."""
    assert seed
    await check_cancel_then_work(*breakable, ticks, clock)


@pytest.mark.parametrize("clock", CLOCKS)
@given(breakable=breakable_cases(), ticks=st.integers(0, 30), seed=st.random_module())
async def test_closing_ends_steps_under_way(
    breakable: tuple[GraphCase, GraphDef], ticks: int, seed: object, clock: Clock
) -> None:
    """A running step ends with its session and does not hang."""
    assert seed
    await check_close_under_a_step(*breakable, ticks, clock)


@settings(max_examples=20)  # each one collects garbage twice, which is what takes the time
@given(breakable_cases())
async def test_tensors_die_with_their_step(breakable: tuple[GraphCase, GraphDef]) -> None:
    """Of the tensors that were sent only constants, which belong to the plan, outlive a step, failed or not."""
    case, graph_def = breakable
    watch = Watch()
    async with watched_session(graph_def, watch) as session:
        await run_case(session, case)
        with pytest.raises(InvalidArgumentError):
            await run_case(session, broken(case))
        after_warm_up = watch.living_tensors()
        for request in (case, broken(case), case):
            with contextlib.suppress(InvalidArgumentError):
                await run_case(session, request)
        assert watch.living_tensors() <= after_warm_up
