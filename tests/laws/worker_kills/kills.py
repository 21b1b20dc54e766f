"""One worker killed (-9) at a random point of a step, and what has to happen then.

    steps run ---- kill -9 ----> each ends with right values, or with UNAVAILABLE that names what is lost
                                 what the lost devices held is gone: a step that reads it says so
                                 init, and a step with the right values: on the survivors, or on a worker that starts

Where in the step the worker dies is drawn in turns of the event loop, of which a step of the same session took some.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from time import perf_counter

import trio

from partita.actors import Session, open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.errors import FailedPreconditionError, PartitaError, UnavailableError
from tests.laws.worker_kills.scene import cluster, right_total, scene, step


@dataclass(frozen=True)
class WorkerKill:
    """What is drawn: `part` of a step after which the worker dies, over 1 for a time behind it; `victim` picks one."""

    starts_worker: bool = False  # the session's only worker dies, and another one must start
    num_tasks: int = 1
    num_steps: int = 1  # at once; several only compare totals
    is_prepared: bool = True  # whether the request has run before
    part: float = 0.5
    victim: float = 0.0


def drawn(seed: int) -> WorkerKill:
    """The kill of a seed: every fifth of the only worker of a session."""
    draw = random.Random(seed)
    return WorkerKill(
        seed % 5 == 4,
        draw.choice([1, 2]),
        draw.choice([1, 1, 4]),
        draw.random() < 0.8,
        draw.uniform(0, 1.2),
        draw.random(),
    )


@dataclass(frozen=True)
class KillReport:
    """Seconds from the kill to the error of a step, None if no step was hit, and to the end of the first right one."""

    error_s: float | None
    right_s: float


def opened(kill: WorkerKill, address: str) -> AbstractAsyncContextManager[Session]:
    """A session of the scene over workers that run, or over one of its own."""
    devices, workers = cluster(kill.num_tasks), 1 if kill.starts_worker else address
    how = open_cluster_session if kill.num_tasks > 1 else open_session
    return how(scene(devices.names), devices, workers=workers)


class Scene:
    """A session, its workers, and its steps."""

    def __init__(self, session: Session, kill: WorkerKill, total: float) -> None:
        self.session = session
        self.kill = kill
        self._right = total
        self.errors: list[tuple[float, PartitaError]] = []  # with the time
        self._turns = 0.0

    async def prepare(self) -> None:
        """Counts how many turns of the event loop a step takes."""
        if not self.kill.is_prepared:
            self._turns = 2000  # about as many as the first step
            await self.session.run([], targets="init")
            return
        for _ in range(2):
            await self._initialise_and_check()
        turns, has_ended = 0, False

        async def count() -> None:
            nonlocal turns
            while not has_ended:
                turns += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            await step(self.session)
            has_ended = True
        self._turns = turns
        await self.session.run([], targets="init")

    async def _initialise_and_check(self) -> None:
        await self.session.run([], targets="init")
        total, counts = await step(self.session)
        assert (total, counts) == (self._right, [0.0] * 4), f"wrong values: {total}, {counts}"

    async def strike(self) -> KillReport:
        """Runs the steps, kills the worker, and goes on until a step is right."""
        members = self.session._workers.members  # type: ignore[attr-defined]  # of `RemoteWorkers`
        victim = list(members.values())[int(self.kill.victim * len(members))]
        devices = self.session._workers.homes.devices_of(victim.process)  # type: ignore[attr-defined]  # the same
        names = [victim.title, *devices, "variables"]
        if self.kill.is_prepared and cluster(self.kill.num_tasks).names[2] in devices:
            names.append("queues")
        async with trio.open_nursery() as nursery:
            for _ in range(self.kill.num_steps):
                nursery.start_soon(self._step)
            for _ in range(int(self.kill.part * self._turns)):
                await trio.lowlevel.checkpoint()
            killed = perf_counter()
            os.kill(victim.worker.pid, signal.SIGKILL)
        for _, error in self.errors:
            check_error(error, names)
        try:
            await self.session.run("counts")
        except FailedPreconditionError:
            pass  # the variables of the lost devices are not there
        except UnavailableError as error:  # the session hears of the loss only now
            check_error(error, names)
            self.errors.append((perf_counter(), error))
        else:
            raise AssertionError("the variables of a killed worker were read")
        await self._initialise_and_check()
        right_s = perf_counter() - killed
        errors_s = [time - killed for time, _ in self.errors]
        return KillReport(max(errors_s, default=None), right_s)

    async def _step(self) -> None:
        try:
            total, counts = await step(self.session)
        except UnavailableError as error:
            self.errors.append((perf_counter(), error))
            return
        except FailedPreconditionError:  # it began behind the loss, with variables that are empty
            return
        assert total == self._right, f"wrong value: {total}"
        assert self.kill.num_steps > 1 or counts == [0.0] * 4, f"wrong values: {counts}"


def check_error(error: PartitaError, names: Sequence[str]) -> None:
    """It names the worker, its devices, and the kinds of state that they held."""
    missing = [name for name in names if name not in error.message]
    assert not missing, f"{type(error).__name__} does not name {missing}: {error.message}"


async def strike(kill: WorkerKill, address: str) -> KillReport:
    """One kill. AssertionError for a wrong value or error."""
    total = await right_total()
    async with opened(kill, address) as session:
        struck = Scene(session, kill, total)
        await struck.prepare()
        return await struck.strike()
