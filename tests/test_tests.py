"""What holds of the tests themselves: how they await, and that a run says what it left out."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Tests about the start of a loop: a command line that starts its own, a benchmark, a script, what hangs in any loop.
START_LOOPS = {"benchmarks/test_benchmarks.py", "scenarios/test_cli_run.py", "test_hangs.py"}
THREE = """
import pytest

def test_runs(): assert True

@pytest.mark.skip(reason="no peer here")
def test_skipped(): assert True

@pytest.mark.slow
def test_slow(): assert True
"""


def calls(path: Path, name: str) -> bool:
    """Whether a file calls a function by this dotted name."""
    tree = ast.parse(path.read_text("utf-8"))
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(tree))


def test_tests_await_without_starting_a_loop() -> None:
    """They are async functions, which pytest-trio runs."""
    found = {path.relative_to(HERE).as_posix() for path in HERE.rglob("*.py") if calls(path, "trio.run")}
    assert found == START_LOOPS


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
