"""Programs that start worker processes: they end quietly, also by Ctrl-C and by an error, and leave no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")

PROGRAM = """
import sys

import trio

from tests.actors.sessions.processes.talk import Talk, connected, message


async def main():
    async with connected(2) as opened:
        talks = [Talk(await opened.open(worker)) for worker in opened.live.values()]
        for talk in talks:
            talk.post(message("where"))
            print((await talk.hear())[0].header["pid"], flush=True)
        print("ready", flush=True)
        {then}


if __name__ == "__main__":
    trio.run(main)
"""

SESSION = """
import trio

from partita.actors import open_session
from tests.actors.sessions.processes.graphs import stateful


async def main():
    async with open_session(stateful(), "cpu:2", workers=2) as session:
        for worker in session._workers.pool.live.values():
            print(worker.pid, flush=True)
        print("ready", flush=True)
        {then}


if __name__ == "__main__":
    trio.run(main)
"""


def start(tmp_path: Path, then: str, program: str = PROGRAM) -> tuple[subprocess.Popen[str], list[int]]:
    """A program in a process group of its own that does something when two workers are open: it, and their numbers."""
    script = tmp_path / "program.py"
    script.write_text(program.replace("{then}", then))
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    if lines[2] != "ready\n":
        raise AssertionError(process.communicate())
    return process, [int(line) for line in lines[:2]]


def ended(process: subprocess.Popen[str], pids: list[int]) -> tuple[int, str]:
    """The exit status, and the errors that were printed; no worker lives."""
    _, errors = process.communicate(timeout=60)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    return process.returncode, errors


def test_a_program_that_ends_is_quiet(tmp_path: Path) -> None:
    """Nothing but what it printed itself."""
    assert ended(*start(tmp_path, "pass")) == (0, "")


@pytest.mark.parametrize(
    ("then", "program"),
    [("await trio.sleep_forever()", PROGRAM), ("await session.run('taken')", SESSION)],
    ids=["idle", "step"],
)
def test_ctrl_c_ends_all_processes(then: str, program: str, tmp_path: Path) -> None:
    """It reaches all processes of the terminal; what is printed is the traceback of the program alone."""
    process, pids = start(tmp_path, then, program)
    os.killpg(process.pid, signal.SIGINT)
    status, errors = ended(process, pids)
    assert status in (-signal.SIGINT, 130), errors
    assert errors.count("Traceback") == 1
    assert errors.endswith("KeyboardInterrupt\n")


def test_an_error_ends_all_processes(tmp_path: Path) -> None:
    """As it was raised."""
    status, errors = ended(*start(tmp_path, "raise ValueError('of the program')"))
    assert status == 1
    assert errors.endswith("ValueError: of the program\n")
    assert errors.count("Traceback") == 1
