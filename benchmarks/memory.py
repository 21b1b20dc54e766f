"""The memory of this process, with the standard library only, so that peers can use it too."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def resident_bytes(process: int | str = "self") -> int:
    """Resident memory now of this process, or of another one by its number; on Linux.

    Elsewhere the peak of this process, which is the same while memory only grows.
    """
    statm = Path(f"/proc/{process}/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else peak_bytes()


def peak_bytes() -> int:
    """The most resident memory so far.

    On Linux from /proc: the peak of `getrusage` includes that of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024
