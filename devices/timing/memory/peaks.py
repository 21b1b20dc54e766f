"""The most bytes in use in each memory, and when.

Of two changes at one instant the release comes first, as an executor frees inputs before it starts the next op. A
buffer that lives for 0 ns needs no memory. For 10 bytes from 0 to 5 ns and 20 bytes from 5 to 9 ns the changes are

    time     0     5     5     9
    change   +10   -10   +20   -20
    in use   10    0     20    0          the peak is 20, first reached at 5
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Numbers


class Lives(NamedTuple):
    """Buffers, by row: the number of their memory, from when to when they are in use, their size."""

    memory: Numbers
    start_ns: Numbers
    end_ns: Numbers
    size_bytes: Numbers


class Peak(NamedTuple):
    """The most bytes in use in one memory, and the first instant at which that many are."""

    size_bytes: int
    at_ns: int


def peaks_of(lives: Lives) -> dict[int, Peak]:
    """The peak of every memory that has a buffer, by number of memory."""
    counts = (lives.end_ns > lives.start_ns) & (lives.size_bytes > 0)
    memory, start_ns, end_ns, size_bytes = (column[counts] for column in lives)
    time_ns = np.concatenate([start_ns, end_ns])
    change = np.concatenate([size_bytes, -size_bytes])
    memory = np.concatenate([memory, memory])
    order = np.lexsort((change, time_ns, memory))
    time_ns, in_use, memory = time_ns[order], np.cumsum(change[order]), memory[order]
    # The sum runs through all memories: each of them begins with 0, because it has given everything back at its end.
    starts = np.flatnonzero(np.diff(memory, prepend=-1)).tolist()
    peaks = {}
    for start, end in pairwise([*starts, len(memory)]):
        highest = start + int(np.argmax(in_use[start:end]))
        peaks[int(memory[start])] = Peak(int(in_use[highest]), int(time_ns[highest]))
    return peaks
