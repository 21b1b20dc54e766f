"""Kills the process group of a sweep with SIGKILL at random points, and counts what became of its rows.

    driver, in a session of its own        python -m tests.laws.sweeps.driver ROWS PIPE POINTS pipe
    a line for each point that begins to run, of all workers kill                                   after a random
    number of lines; then the driver starts again, until no kill is left

A row is lost if it was in the file at a kill and is not at the next. It is doubled if its point runs again although its
row was in the file. The table at the end is compared with that of one process.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.laws.sweeps.driver import AXIS, numbered

CHECKOUT = Path(__file__).parents[3]


class KilledRun(NamedTuple):
    """How many points began to run, and how many rows were in the file when it was killed."""

    ran: int
    stored: int


@dataclass
class KilledSweep:
    """What became of the rows."""

    runs: list[KilledRun] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    is_right: bool = False
    """whether the table at the end is that of one process, and the file has a row for each point and no other"""


def killed_sweep(folder: Path, kills: int, points: int, seed: int) -> KilledSweep:
    """A sweep of so many points that is killed so often, at points that the seed draws; the last run ends by itself."""
    drawn, outcome = random.Random(seed), KilledSweep()
    rows, pipe = folder / "sweep.rows", folder / "began"
    os.mkfifo(pipe)
    stored: set[int] = set()
    for run in range(kills + 1):
        is_last = run == kills
        until = None if is_last else drawn.randint(0, max(1, 2 * (points - len(stored)) // (kills - run + 1)))
        ran, table = _run(rows, pipe, points, until)
        after = _stored(rows)
        outcome.lost += len(stored - after)
        outcome.doubled += len(stored & set(ran)) + len(ran) - len(set(ran))
        outcome.runs.append(KilledRun(len(ran), len(after)))
        stored = after
        if is_last:
            outcome.is_right = table == [numbered(number) for number in range(points)] and stored == set(range(points))
    return outcome


def _run(rows: Path, pipe: Path, points: int, until: int | None) -> tuple[list[int], list[float]]:
    """Starts the driver and kills its group after `until` points have begun: these, and the table of one that ends."""
    # Opened for both, so that there is a reader before the first writer, and no end of file between two of them.
    reading = os.open(pipe, os.O_RDWR)
    command = [sys.executable, "-m", "tests.laws.sweeps.driver", str(rows), str(pipe), str(points)]
    path = os.pathsep.join([str(CHECKOUT), *sys.path])
    driver = subprocess.Popen(
        command, cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, start_new_session=True
    )
    began: list[int] = []
    try:
        if until is not None:
            while len(began) < until:
                began += _lines(reading)
            os.killpg(driver.pid, signal.SIGKILL)
        printed, _ = driver.communicate()  # whose end is that of the last process that has it: none is left after it
        os.set_blocking(reading, False)
        while more := _lines(reading):
            began += more
    finally:
        os.close(reading)
    return began, [float(text) for text in printed.split()]


def _lines(reading: int) -> list[int]:
    """The points that have begun since the last look; waits for one unless nothing blocks."""
    try:
        return [int(line) for line in os.read(reading, 1 << 16).split()]
    except BlockingIOError:
        return []


def _stored(rows: Path) -> set[int]:
    """The points whose rows are in the file, after what was not committed has been rolled back."""
    if not rows.exists():
        return set()
    with closing(sqlite3.connect(rows)) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'rows'").fetchone()[0]:
            return set()
        found = connection.execute(f"SELECT json_extract(axes, '$.{AXIS}') FROM rows").fetchall()
    numbers = [number for (number,) in found]
    assert len(numbers) == len(set(numbers)), "two rows of one point"
    return set(numbers)
