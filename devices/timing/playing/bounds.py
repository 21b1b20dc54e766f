"""How sure the durations of events are: between which bounds four of five runs take.

event      duration   cost of the op (time, low, high)   bounds
compute    2760       2760, 2480, 3090                   2480, 3090
compute    5520       2760, 2480, 3090                   4960, 6180     on a device that is twice as slow
copy       7000       -                                  7000, 10000    the rate of a link is that of its datasheet
launch     5000       -                                  5000, 5000
collective 9000       4500, 2650, 7650                   5300, 15300    that shared its links
compute    900        900, None, None                    -1, -1         the source does not say
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..events import KINDS, UNKNOWN_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ....graph.arrays import Numbers
    from ..costs.source import OpCost
    from ..events import TimeBounds
    from ..hardware.log import Taken

LEAST_LINK_SHARE = 0.7
"""assumed: a copy reaches at least this share of the rate that the datasheets of its links give, and at most all"""
_MOST_NS = 2**62


def duration_bounds(
    costs: Sequence[OpCost],
    cost_of: Numbers,
    kind: NDArray[np.uint8],
    duration_ns: Numbers,
    collectives: Mapping[int, Taken],
) -> TimeBounds:
    """The bounds of durations by event: those of the op's cost, as much longer or shorter as the event is than it.

    So are those of collectives, by event what they are. Launches, waits, sends and latencies are taken as exact.
    """
    low_ns, high_ns = duration_ns.copy(), duration_ns.copy()
    copies = kind == KINDS.index("copy")
    high_ns[copies] = np.ceil(duration_ns[copies] / LEAST_LINK_SHARE).astype(np.int64)
    ops = np.flatnonzero((kind == KINDS.index("compute")) & (duration_ns > 0))
    number = cost_of[ops]
    times = np.array([max(cost.time_ns, 1) for cost in costs], np.float64)
    share = duration_ns[ops] / times[number]
    for column, bounds in (
        (low_ns, [cost.low_ns for cost in costs]),
        (high_ns, [cost.high_ns for cost in costs]),
    ):
        known = np.array([UNKNOWN_NS if bound is None else min(bound, _MOST_NS) for bound in bounds], np.int64)[number]
        scaled = np.minimum(np.rint(known * share), _MOST_NS).astype(np.int64)
        column[ops] = np.where((known == UNKNOWN_NS) | (share == 1), known, scaled)
    for event, taken in collectives.items():
        cost = taken.plan.cost
        longer = duration_ns[event] / max(cost.time_ns, 1)
        low_ns[event], high_ns[event] = round(cost.low_ns * longer), round(cost.high_ns * longer)
    return low_ns, high_ns
