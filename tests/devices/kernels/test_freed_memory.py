"""Freed memory stays in the process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_ROUNDS = """
import resource
import numpy as np
from partita.devices.kernels.freed_memory import keep_freed_memory
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def step():
    values = [np.ones(1 << 20, np.uint8) for _ in range(24)]
    while values:
        values.pop()
keep_freed_memory()
step()
before = faults()
step()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library manages memory in another way")
def test_second_step_gets_the_memory_of_the_first() -> None:
    """24 arrays of 256 pages each are allocated anew with hardly a page fault."""
    done = subprocess.run([sys.executable, "-c", _ROUNDS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 24 * 256 / 8
