"""Functions to sweep, which worker processes import by name."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def total(a: int, b: int) -> int:
    """A number."""
    return a + b


def figures(a: float, b: float) -> dict[str, object]:
    """A mapping, of numpy's numbers too."""
    return {"sum": np.float64(a + b), "more": np.int64(a) > b, "text": f"={a}", "none": None}


def fails_for_three(a: int, b: int) -> Mapping[str, float]:
    """An error in two lines for some points, and the end of the process for one."""
    if a == 3:
        raise ValueError(f"no\nvalue at {b}")
    if (a, b) == (2, 2):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"ratio": a / b}


def size_of(file: Path, scale: int) -> int:
    """The bytes of a file."""
    return len(file.read_bytes()) * scale


def whatever(value: object) -> object:
    """What it is given."""
    return value


def interrupted(a: int) -> int:
    """Ctrl-C at the third point."""
    if a == 3:
        raise KeyboardInterrupt
    return a


def leaves(a: int) -> int:
    """Calls sys.exit for one point."""
    if a == 2:
        raise SystemExit("enough")
    return a
