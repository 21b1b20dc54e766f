"""Curves with more points than a screen can show, thinned to at most `MOST_POINTS`.

    bytes in use      0  90  10  80  20  70 |  5  60  15 |  0        two of the equal spans of the makespan
    what is kept      0  90                 |  5  60     |  0        of each span the least and the most

A curve of memory keeps points as they are, so whatever is read off it was so. Of the use of a link each span gets its
mean: bytes stay the same.
"""

from __future__ import annotations

import numpy as np

from ....devices.timing.saved.archive import Column
from ....graph.arrays import Numbers

MOST_POINTS = 4000
_SPANS = MOST_POINTS // 2 - 2


def kept_points(at_ns: Numbers, total: Numbers, until_ns: int) -> Numbers:
    """The numbers of the points to keep, in order: the first, the highest, and of each span the least and the most."""
    if len(at_ns) <= MOST_POINTS:
        return np.arange(len(at_ns))
    span = at_ns // -(-until_ns // _SPANS)
    order = np.lexsort((total, span))
    last = np.flatnonzero(np.diff(span[order], append=-1))
    first = np.concatenate([[0], last[:-1] + 1])
    return np.unique(np.concatenate([[0, int(np.argmax(total))], order[first], order[last]]))


def mean_rates(begin_ns: Numbers, end_ns: Numbers, rate: Column, until_ns: int) -> tuple[Numbers, Numbers, Column]:
    """(from, to, rate) of equal spans of time, each with its mean rate; the loads as they are if they are few.

    Loads do not overlap and are in order; spans without any load are left out.
    """
    if len(begin_ns) <= MOST_POINTS:
        return begin_ns, end_ns, rate
    bounds = np.unique(np.linspace(0, until_ns, _SPANS + 1).astype(np.int64))
    times = np.stack([begin_ns, end_ns], axis=1).reshape(-1)
    carried = np.stack([np.zeros(len(rate)), np.cumsum((end_ns - begin_ns) * rate)], axis=1)
    carried[1:, 0] = carried[:-1, 1]
    in_span = np.diff(np.interp(bounds, times, carried.reshape(-1)))
    used = in_span > 0
    return bounds[:-1][used], bounds[1:][used], in_span[used] / np.diff(bounds)[used]
