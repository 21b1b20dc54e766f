"""Keeps the memory of freed arrays in the process, for the arrays of the next kernels.

A step allocates and frees as much as the step before. The C library of Linux gives large blocks, and much free memory
at the end of its heap, back to the system, and gets pages of zeros again for the next step: that has cost a fifth of
the time of training steps. It gives back less as soon as it has seen larger blocks freed: blocks of its own up to the
size of the largest one, and up to twice as much free memory (mallopt(3), "dynamic mmap threshold"). So one block of the
largest size that counts is allocated once, without touching its pages. Where memory is managed otherwise this does
nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_LARGEST = (32 << 20) - (64 << 10)  # bytes: with what the library adds, not beyond the 32 MiB up to which it learns


@cache
def keep_freed_memory() -> None:
    """Called before the first kernel of a process runs; a process keeps 64 MiB at most."""
    np.empty(_LARGEST, np.uint8)
