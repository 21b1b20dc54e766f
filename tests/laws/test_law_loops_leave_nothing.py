"""After an error or a cancellation at any point of a program with loops and deferred nodes, nothing is left.

Programs are drawn by seed; Tanh fails on request, Abs is deferred. `SOAK=1000 pytest -s` on this file disturbs a
thousand steps instead of 60, and prints how they ended.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
import trio

from partita.actors.running.step import Step
from partita.actors.sessions import workers
from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.errors import InvalidArgumentError
from tests.actors.programs import Program, program
from tests.actors.running.disturbances import DEFERRED, FAILING, Disturbance
from tests.runs import Watch, assert_same_values

pytestmark = pytest.mark.usefixtures("quick_collections")

STEPS = int(os.environ.get("SOAK", "60"))
PER_PROGRAM = 10
ENDINGS: Counter[str] = Counter()


class _Steps:
    """Creates the steps of a session and counts those that are alive."""

    def __init__(self) -> None:
        self.references: list[weakref.ref[Step]] = []

    def __call__(self, *arguments: Any) -> Step:
        step = _WeakStep(*arguments)
        self.references.append(weakref.ref(step))
        return step

    def living(self) -> int:
        return sum(reference() is not None for reference in self.references)


class _WeakStep(Step):
    __slots__ = ("__weakref__",)


class _Case:
    """A program in a session, with the objects that are watched."""

    def __init__(self, case: Program, session: Session, disturbance: Disturbance, watch: Watch, steps: _Steps) -> None:
        self.case = case
        self.session = session
        self.disturbance = disturbance
        self.watch = watch
        self.steps = steps
        self.turns = self.calls = 0

    async def live_fetches(self) -> list[str]:
        """The fetches that are not dead."""
        live = []
        for name in self.case.fetches:
            try:
                await self.session.run(name, self.case.feeds)
                live.append(name)
            except InvalidArgumentError as error:
                if error.message != "Retval[0] does not have value":
                    raise
        return live

    async def run_well(self, fetches: list[str]) -> list[Any]:
        """Runs a step without disturbance; records its number of turns and of Tanh calls."""
        self.disturbance.calls = self.disturbance.turns = 0
        values = await self.session.run(fetches, self.case.feeds)
        self.turns, self.calls = self.disturbance.turns, self.disturbance.calls
        return values

    async def check_nothing_left(self, tasks: int) -> None:
        assert self.watch.left_behind()["waiters"] == 0
        assert not self.disturbance.pending
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert self.session.statistics().steps_running == 0
        self.watch.meetings.clear()
        for _ in range(100):  # actors drop what is left of a step when they come to it, a message a turn
            await trio.lowlevel.checkpoint()
        gc.collect()  # an error's traceback is a circle, by way of the frames that handled it
        assert self.steps.living() == 0

    async def disturb(self, fetches: list[str], expected: list[Any], random: Random) -> str:
        """Runs a step that may fail or be cancelled, then a good one. Returns how the first ended."""
        tasks = trio.lowlevel.current_statistics().tasks_living
        disturbance, ending, last_turn = self.disturbance, "cancelled", 10**6
        if self.calls and random.random() < 0.5:
            disturbance.calls, disturbance.fails_at = 0, random.randint(1, self.calls)
        else:
            last_turn = random.randint(0, self.turns)
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._cancel_later, scope, last_turn)
                try:
                    assert_same_values(await self.session.run(fetches, self.case.feeds), expected)
                    ending = "done"
                except InvalidArgumentError as error:
                    if (error.message, error.op) != ("told to fail", FAILING):
                        raise
                    ending = "failed"
                nursery.cancel_scope.cancel()
        disturbance.fails_at = -1
        await self.check_nothing_left(tasks)
        assert_same_values(await self.session.run(fetches, self.case.feeds), expected)
        return ending

    async def _cancel_later(self, scope: trio.CancelScope, ticks: int) -> None:
        for _ in range(ticks):
            await trio.lowlevel.checkpoint()
        scope.cancel()


async def check(seed: int) -> None:
    random, watch, steps = Random(seed), Watch(), _Steps()
    case = program(seed, 1 + seed % 4, seed % 7, ("Neg", FAILING, DEFERRED, DEFERRED))
    disturbance = Disturbance(random)
    with pytest.MonkeyPatch.context() as patch:
        disturbance.install(patch)
        patch.setattr(workers, "LocalRendezvous", watch)
        patch.setattr(workers, "Step", steps)
        async with trio.open_nursery() as nursery, open_session(case.graph_def, "cpu:4", budget_s=0) as session:
            nursery.start_soon(disturbance.clerk)
            watched = _Case(case, session, disturbance, watch, steps)
            fetches = await watched.live_fetches()
            if fetches:
                expected = await watched.run_well(fetches)
                for _ in range(PER_PROGRAM):
                    ENDINGS[await watched.disturb(fetches, expected, random)] += 1
            nursery.cancel_scope.cancel()


@pytest.fixture(scope="module", autouse=True)
def _account() -> Iterator[None]:
    yield
    print(f"\nsteps disturbed: {dict(ENDINGS)}")


@pytest.mark.parametrize("seed", range(STEPS // PER_PROGRAM))
async def test_a_disturbed_step_leaves_nothing(seed: int) -> None:
    """No task, waiter, pending call or step is left, and the next step is right."""
    await check(seed)
