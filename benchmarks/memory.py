"""How much memory this process has and had.

Flows in: nothing. Flows out: bytes. Always holds: the standard library only, so that peers use it too.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def resident_bytes() -> int:
    """Resident memory now, on Linux; elsewhere the peak, which serves as long as memory only grows."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else peak_bytes()


def peak_bytes() -> int:
    """The most resident memory so far.

    On Linux from /proc: what `getrusage` says starts at the size of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage if sys.platform == "darwin" else usage * 1024
