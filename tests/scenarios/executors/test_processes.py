"""Worker processes: calls come back, deaths hit the call that caused them alone, and no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from partita.errors import InvalidArgumentError, UnavailableError
from partita.scenarios import WorkerProcesses
from tests.scenarios.executors import called

UNGUARDED = """
from partita.scenarios import WorkerProcesses

with WorkerProcesses(1) as executor:
    print(executor.submit(abs, -1).exception())
"""
WAITING = """
import os, signal
from partita.scenarios import WorkerProcesses

if __name__ == "__main__":
    with WorkerProcesses(2) as executor:
        for future in [executor.submit(os.getpid) for _ in range(2)]:
            future.result()
        waiting = [executor.submit(signal.pause) for _ in range(4)]
        print("ready", flush=True)
        input()
"""


@pytest.fixture(scope="module")
def two() -> Iterator[WorkerProcesses]:
    """Two worker processes for the tests of this module that end none themselves, or have it started again."""
    with WorkerProcesses(2) as executor:
        yield executor


def test_calls_come_back(two: WorkerProcesses) -> None:
    """Each future has what its call returned or raised."""
    futures = [two.submit(called.squared, number) for number in range(20)]
    assert [future.result() for future in futures] == [number * number for number in range(20)]
    with pytest.raises(ValueError, match="too bad"):
        two.submit(called.fails, "too bad").result()


def test_a_call_that_kills_its_process_fails_alone(two: WorkerProcesses) -> None:
    """A pool of the standard library would lose all that come after it."""
    futures = [two.submit(called.squared_unless, number, 7, 23) for number in range(50)]
    errors = {number: future.exception() for number, future in enumerate(futures)}
    assert [number for number, error in errors.items() if error is not None] == [7, 23]
    assert all(isinstance(errors[number], UnavailableError) for number in (7, 23))
    assert "was ended by signal 9 (SIGKILL), 2 times in a row" in str(errors[7])
    assert [futures[number].result() for number in range(50) if number not in (7, 23)] == [
        number * number for number in range(50) if number not in (7, 23)
    ]


def test_an_exit_code_is_named(two: WorkerProcesses) -> None:
    """Of a process that ends itself."""
    with pytest.raises(UnavailableError, match="ended with exit code 3"):
        two.submit(called.leaves, 3).result()


def test_a_call_whose_process_dies_once_is_run_again(two: WorkerProcesses, tmp_path: Path) -> None:
    """As after a machine ran out of memory for a moment."""
    assert two.submit(called.first_time, str(tmp_path / "marker")).result() is True


def test_a_process_that_dies_with_nothing_to_do_is_replaced() -> None:
    """The next call does not see it."""
    with WorkerProcesses(1) as executor:
        first = executor.submit(called.process_id).result()
        os.kill(first, signal.SIGKILL)
        assert executor.submit(called.process_id).result() != first


def test_processes_are_not_forked(two: WorkerProcesses) -> None:
    """A fork would have all modules of this process, and its locks."""
    loaded = two.submit(called.loaded_modules).result()
    assert "partita.scenarios.executors.processes" in loaded
    assert "partita.scenarios.cli" not in loaded


def test_a_block_that_fails_ends_its_processes() -> None:
    """At once, whatever runs in them."""
    futures: list[Future[None]] = []
    executor = WorkerProcesses(2)

    def interrupted() -> None:
        with executor:
            executor.submit(called.squared, 1).result()
            futures.extend(executor.submit(called.waits) for _ in range(6))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(future.exception() is not None for future in futures)
    assert executor.process_ids() == []
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(called.squared, 1)


def test_processes_that_cannot_start_say_why(tmp_path: Path) -> None:
    """A script whose workers would start workers: it ends, with a sentence that says what to do."""
    script = tmp_path / "unguarded.py"
    script.write_text(UNGUARDED)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert 'not below `if __name__ == "__main__":`' in done.stdout


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Also when it is killed: its output, which they share, is closed when the last of them has ended."""
    script = tmp_path / "waiting.py"
    script.write_text(WAITING)
    driver = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    assert driver.stdout.readline() == "ready\n"
    driver.kill()
    assert driver.communicate(timeout=60)[0] == ""


def test_no_workers_are_too_few() -> None:
    """They would never end a call."""
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        WorkerProcesses(0)
