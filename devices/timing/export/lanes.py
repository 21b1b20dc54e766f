"""Events of one stream that overlap, spread over lanes, so that in each lane one begins when the one before has ended.

    copies on a link     0..8   2..5   4..9   8..9          a lane is the lowest that is free at the start:
    their lanes          0      1      2      0

What occupies a stream has the first lanes, and what does not, such as a transfer that arrives, those behind them: so
computing is in lane 0 of its stream, whatever arrives in the meantime. What takes no time is in lane 0 too.
"""

from __future__ import annotations

import heapq

import numpy as np

from ....graph.arrays import Flags, Numbers
from ..events import OCCUPYING, Events


def lanes_of(events: Events, of: Flags) -> Numbers:
    """The lane of each event in its stream, from 0; only the events `of` are spread, the others are in lane 0."""
    spread = of & (events.duration_ns > 0)
    lanes = np.zeros(len(events), np.int64)
    occupies = events.of_kind(*OCCUPYING)
    streams = np.stack([events.device.numbers, events.stream.numbers])
    _, stream = np.unique(streams, axis=1, return_inverse=True)
    used = np.zeros(int(stream.max(initial=0)) + 1, np.int64)
    for group in (spread & occupies, spread & ~occupies):
        rows = np.flatnonzero(group)
        rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
        rows = rows[np.argsort(stream[rows], kind="stable")]
        for own in np.split(rows, np.flatnonzero(np.diff(stream[rows])) + 1):
            if len(own):
                first = used[stream[own[0]]]
                lanes[own] = first + _lanes(events.start_ns[own], events.end_ns[own])
                used[stream[own[0]]] = lanes[own].max() + 1
    return lanes


def _lanes(start_ns: Numbers, end_ns: Numbers) -> Numbers:
    """The lanes of the events of one stream, which are in order of start."""
    if (start_ns[1:] >= end_ns[:-1]).all():
        return np.zeros(len(start_ns), np.int64)
    busy: list[tuple[int, int]] = []  # when a lane becomes free, and its number
    free: list[int] = []
    lanes = []
    for start, end in zip(start_ns.tolist(), end_ns.tolist(), strict=True):
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lane))
        lanes.append(lane)
    return np.array(lanes, np.int64)
