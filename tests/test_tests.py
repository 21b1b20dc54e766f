"""Rules for the tests: how they await, what they measure, and that a run reports the tests it left out."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Tests about the start of a loop: a command line that starts its own, a benchmark, Ctrl-C, what hangs in any loop.
# Commands beside tests start one too.
START_LOOPS = {
    "benchmarks/test_benchmarks.py",
    "devices/kernels/sweep/sweeping.py",
    "laws/models/__main__.py",
    "laws/parallel/__main__.py",
    "laws/parallel/programs.py",
    "laws/test_law7_interrupts.py",
    "laws/worker_kills/__main__.py",
    "laws/worker_memory/__main__.py",
    "scenarios/test_cli_run.py",
    "test_hangs.py",
}
# What a busy machine changes. Bytes do not depend on it where nothing awaits and no thread is used.
UNSTEADY = ("time.sleep", "time.time", "time.monotonic", "perf_counter", "time.perf_counter", "time.process_time")
# For their commands, which report it: no test judges it.
MEASURE_TIME = {"devices/kernels/sweep/sweeping.py", "laws/worker_kills/kills.py", "laws/worker_memory/__main__.py"}
MEASURE_BYTES = {"devices/kernels/test_output_sizes.py", "graph/graphdef/test_import_memory.py"}
MEASURE_BYTES |= {"devices/wire/test_hostile_bytes.py"}  # of `decode`, which neither awaits nor uses threads
MEASURE_BYTES |= {"devices/kernels/sweep/__main__.py"}  # as its time: for the command
THREE = """
import pytest

def test_runs(): assert True

@pytest.mark.skip(reason="no peer here")
def test_skipped(): assert True

@pytest.mark.slow
def test_slow(): assert True
"""


@cache
def calls(path: Path) -> list[ast.Call]:
    """All calls in a file."""
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]


def callers(*names: str) -> set[str]:
    """The files of the suite that call a function by one of these dotted names."""
    files = HERE.rglob("*.py")
    return {
        path.relative_to(HERE).as_posix() for path in files if {ast.unparse(c.func) for c in calls(path)} & {*names}
    }


def keywords(path: Path) -> set[str | None]:
    """The names of all keyword arguments in a file."""
    return {keyword.arg for call in calls(path) for keyword in call.keywords}


def test_tests_await_without_starting_a_loop() -> None:
    """They are async functions, which pytest-trio runs."""
    assert callers("trio.run") - START_LOOPS == set()


def test_tests_measure_nothing_that_a_busy_machine_changes() -> None:
    """No clock of the machine, and bytes only of code that runs by itself; deadlines are set in one place."""
    assert callers(*UNSTEADY) - MEASURE_TIME == set()
    assert callers("tracemalloc.start") - MEASURE_BYTES == set()
    with_deadlines = [path.name for path in HERE.rglob("*.py") if "deadline" in keywords(path)]
    assert with_deadlines == ["conftest.py"]


def test_tests_read_nothing_beside_the_checkout() -> None:
    """A plain clone runs all of them: only the corpus, of which a part is committed, may be completed from outside."""
    climbs = {
        path.relative_to(HERE).as_posix()
        for path in HERE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Path(__file__).parents"
        if int(ast.unparse(node.slice)) > len(path.relative_to(HERE).parts)
    }
    assert climbs == set()
    beside = {path.name for path in HERE.rglob("*.py") if re.search(r"(?i)checkout\.parent\b", path.read_text("utf-8"))}
    assert beside == {"corpus.py"}


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_says_what_it_left_out_and_why(tmp_path: Path, processes: str) -> None:
    """By name, in one process or over several."""
    (tmp_path / "test_three.py").write_text(THREE)
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    options = ["-q", "-n", processes, "-m", "not slow", "-c", str(HERE.parent / "pyproject.toml")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    section = (
        "1: left out by -m 'not slow'\n  test_three.py::test_slow\n1: no peer here\n  test_three.py::test_skipped\n"
    )
    assert section in done.stdout
