"""The sessions of an event loop share one slice of time in each of its turns."""

from __future__ import annotations

import gc
from collections import Counter
from itertools import count
from types import ModuleType
from typing import Any

import pytest
import trio

from partita.actors import open_session
from partita.actors.plans.instructions import Slots
from partita.actors.running import pacing, threads
from partita.actors.running.messages import AT_ONCE
from partita.actors.running.pacing import DEFAULT_BUDGET_S, Pacer, SharedSlice, shared_slice
from partita.actors.running.part import Part
from partita.actors.sessions import session, session_graph
from partita.graph import RunMetadata, RunOptions
from partita.graph.builder import GraphBuilder


class Clock:
    """A clock that stands still unless a test sets it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_after_a_switch_begins_a_slice_and_others_use_what_it_leaves(clock: Clock) -> None:
    """Of tasks that all waited since slice 0, one begins slice 1; the rest goes on while that lasts."""
    shared = SharedSlice(clock)
    shared.join(0.010)
    clock.now_s = 1.0
    before = shared.number
    assert shared.may_go_on(before)
    clock.now_s += 0.004
    assert shared.may_go_on(before)
    clock.now_s += 0.002
    assert not shared.may_go_on(before)
    assert shared.may_go_on(shared.number)


def test_the_smallest_budget_counts_until_its_owner_leaves(clock: Clock) -> None:
    shared = SharedSlice(clock)
    for budget_s in (0.010, 0.002, 0.004):
        shared.join(budget_s)
    shared.may_go_on(shared.number)
    assert shared.end == pytest.approx(0.001)
    shared.leave(0.002)
    shared.may_go_on(shared.number)
    assert shared.end == pytest.approx(0.002)
    shared.leave(0.004)
    shared.leave(0.010)
    shared.may_go_on(shared.number)
    assert shared.end == pytest.approx(DEFAULT_BUDGET_S / 2)


def test_a_pacer_that_is_gone_has_left(clock: Clock) -> None:
    shared = SharedSlice(clock)
    pacer = Pacer(0.001, shared=shared)
    assert shared.end == pytest.approx(0.0005)
    del pacer
    gc.collect()
    shared.may_go_on(shared.number)
    assert shared.end == pytest.approx(DEFAULT_BUDGET_S / 2)


async def test_sessions_of_one_loop_share_a_slice_and_those_of_two_do_not() -> None:
    b = GraphBuilder()
    b.op("Neg", 1.0, name="one")

    async def slice_of_a_session() -> SharedSlice:
        async with open_session(b.graph_def(), "cpu:2") as session:
            await session.run("one")
            (worker,) = session.workers.values()
            (actor,) = (a for name, a in worker.actors.items() if name.endswith("CPU:0"))
            return actor.pacer.slice

    assert await slice_of_a_session() is await slice_of_a_session() is shared_slice()
    assert await trio.to_thread.run_sync(trio.run, slice_of_a_session) is not shared_slice()


async def test_of_many_steps_the_older_ones_get_on_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty steps begin at once: few have parts that have begun. A look at the clock takes 50 us."""
    looks = count()
    shared = SharedSlice(lambda: next(looks) * 5e-5)
    pacing._slice_of_loop.set(shared)
    b = GraphBuilder()
    x = b.placeholder("x", "float32", ())
    for number in range(300):
        x = b.op("Neg", x, device=f"/device:CPU:{number // 3 % 2}")[0]
    b.op("Identity", x, name="y")
    open_parts: set[int] = set()
    most = 0
    begin, finished = Part._begin, Part.finished

    def started(part: Part, slots: Slots, frame: str = "", *, ahead: bool = False) -> None:
        nonlocal most
        open_parts.add(id(part))
        most = max(most, len(open_parts))
        begin(part, slots, frame, ahead=ahead)

    def has_finished(part: Part, segment: int) -> None:
        finished(part, segment)
        if not part._unfinished:
            open_parts.discard(id(part))

    monkeypatch.setattr(Part, "_begin", started)
    monkeypatch.setattr(Part, "finished", has_finished)
    async with open_session(b.graph_def(), "cpu:2") as session:
        await session.run("y", {"x": 1.0})
        while shared.clock() < shared.end - 1e-4:  # the slice is all but used up: parts have to wait for their turn
            pass
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(session.run, "y", {"x": 1.0})
        assert not open_parts
    assert 2 < most < 2 * 20  # all parts at once would be 40; how many fewer depends on how fast the machine is


async def test_a_part_with_many_receives_starts_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No turn registers more than a limit of them; what was sent before is received all the same."""
    registered: list[int] = []
    expect = Part._expect

    def expected(part: Part, keys: list[str]) -> None:
        registered.append(len(keys))
        expect(part, keys)

    monkeypatch.setattr(Part, "_expect", expected)
    b = GraphBuilder()
    x, count = b.placeholder("x", "float32", (), device="/device:CPU:0"), 2 * AT_ONCE + 1
    values = [b.op("AddV2", x, float(number), device="/device:CPU:0")[0] for number in range(count)]
    read = [b.op("Neg", value, device="/device:CPU:1")[0] for value in values]
    b.op("AddN", read, name="y", device="/device:CPU:1")
    async with open_session(b.graph_def(), "cpu:2") as session:
        for step in range(3):
            # A trace sends each tensor in a message of its own.
            options = RunOptions(trace_level=RunOptions.FULL_TRACE)
            (y,) = await session.run("y", {"x": 1.0 + step}, options=options, metadata=RunMetadata())
            assert y == -sum(1.0 + step + number for number in range(count))
    assert max(registered) == AT_ONCE
    assert sum(registered) >= 3 * count


async def test_sessions_that_open_at_once_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read a small graph and to prepare a request hold the loop for a millisecond each; here, for a whole slice."""
    now_s = 0.0
    pacing._slice_of_loop.set(SharedSlice(lambda: now_s))
    turn, turns = 0, dict[str, list[int]](read=[], prepare=[])

    def slow(module: ModuleType, name: str, what: str) -> None:
        function = getattr(module, name)

        def called(*arguments: Any) -> Any:  # Any: as the function
            nonlocal now_s
            turns[what].append(turn)
            now_s += DEFAULT_BUDGET_S
            return function(*arguments)

        monkeypatch.setattr(module, name, called)

    slow(session_graph, "_read", "read")
    slow(session, "prepare", "prepare")
    monkeypatch.setattr(threads, "_HAVE_RUN", {session_graph._read, *threads._HAVE_RUN})
    b = GraphBuilder()
    b.constant(1.0, name="y")

    async def one() -> None:
        async with open_session(b.graph_def(), "cpu:1") as opened:
            assert await opened.run("y") == [1]

    async def count_turns(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        nonlocal turn
        task_status.started()
        while True:
            turn += 1
            await trio.lowlevel.checkpoint()

    await one()  # loads modules
    turns = {what: [] for what in turns}
    async with trio.open_nursery() as nursery:
        await nursery.start(count_turns)
        async with trio.open_nursery() as others:
            for _ in range(5):
                others.start_soon(one)
        nursery.cancel_scope.cancel()
    for what, of_what in turns.items():
        assert len(of_what) == 5, what
        # trio runs the tasks of a turn in any order: one may come after the count, and that of the next turn before it.
        assert max(Counter(of_what).values()) <= 2, what
