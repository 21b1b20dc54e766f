"""Other work: processes that keep every core busy while a block runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from partita.devices.cores import num_cores

# Ends with the process that started it, too, should that be killed.
_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


@contextmanager
def busy_cores() -> Iterator[None]:
    """Starts a process for each core that this one may use, and ends them with the block."""
    processes = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(num_cores())]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
