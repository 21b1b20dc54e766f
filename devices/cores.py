"""How many cores there are for us. It imports nothing, so that worker processes start fast."""

from __future__ import annotations

import os


def num_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
