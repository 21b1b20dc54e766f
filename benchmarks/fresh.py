"""Whole processes: started, timed from outside, waited for. The checkout comes last on their path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from .sampling import Sample

CHECKOUT = Path(__file__).parents[1]
_MODULE = (
    "import sys, runpy; sys.path.append(sys.argv.pop(1)); sys.argv.pop(0); "
    "runpy.run_module(sys.argv[0], run_name='__main__')"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: wall and CPU seconds, and what it printed."""

    sample: Sample
    output: str


def fresh(module: str, *arguments: str, python: str = sys.executable) -> Ended:
    """Runs a module of this package as a program in a process of its own."""
    return fresh_command([python, *module_flags(module), *arguments])


def module_flags(module: str) -> list[str]:
    """Flags of an interpreter that run a module of the checkout without letting the checkout hide any library."""
    return ["-P", "-c", _MODULE, str(CHECKOUT), module]


def fresh_command(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Ended:
    """Runs a command, in the environment of this process unless one is given; RuntimeError when it fails."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    with process.stdout:
        output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {process.returncode}")
    return Ended(Sample(wall_s, usage.ru_utime + usage.ru_stime), output)
