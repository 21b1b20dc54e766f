"""Links at work: what crosses a port, and the copies that wait for its engines.

A rate counts units of 1 / `UNITS` bytes/s, which up to 40 flows divide without a rest. So a flow that shares ends
exactly when arithmetic says: floating-point numbers would round, and an end that rounds up by 1e-16 of its time is a
nanosecond late. Where a rate has a rest, a flow loses less than 1e-15 bytes/s.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from ...link import transfer_ns
from ...topology import Link
from .profile import Pace

if TYPE_CHECKING:
    from .flow_groups import ActiveFlow, FlowGroup, Path
    from .ties import Component

UNITS = lcm(*range(1, 41))
NS = 10**9
WHOLE = 1 << 40
"""the weight of flows whose whole rate is bytes that they carry"""


class Crossing:
    """The flows of one group on one port: `count` of them.

    On a port that is not watched, each of them may have a rate of up to `allowed` without that the port can be full.
    `bound` is the least number that the group's heap has for this crossing.
    """

    __slots__ = ("allowed", "bound", "count", "group", "port", "weight")

    def __init__(self, group: FlowGroup, port: ActiveLink) -> None:
        self.group = group
        self.port = port
        self.count = 0
        self.weight = 0  # of its flows together
        self.allowed = self.bound = -1


class ActiveLink:
    """A link at work, or port: who crosses it, and the copies that wait for its engines.

    A port that is *watched* may be full; one that is not watched is not. It is full if no flow of it could get more.
    """

    entry = 0  # in the calendar nothing that happens to a port is ever stale

    __slots__ = (
        "capacity",
        "component",
        "crossings",
        "few",
        "flows",
        "free_engines",
        "has_engines",
        "is_full",
        "is_watched",
        "left",
        "link",
        "load",
        "mark",
        "pace",
        "paths",
        "queue",
        "waits",
        "watched_to",
    )

    def __init__(self, link: Link, pace: Pace | None = None) -> None:
        self.link = link
        self.pace = pace
        self.watched_to = -1  # the last change of pace that the calendar knows
        self.capacity = link.bandwidth_bytes_per_s * UNITS
        self.flows = 0
        self.few: dict[Path, None] = {}  # with flows in no group: then there are no groups here
        self.paths: dict[Path, None] = {}  # of groups
        self.crossings: dict[FlowGroup, Crossing] = {}
        self.is_watched = self.is_full = False
        self.component: Component | None = None
        self.left = 0  # while rates are found: the capacity that is not given away
        self.waits = 0  # while rates are found: the flows without a rate
        self.mark = 0  # the last search that came here
        self.has_engines = link.copy_engines > 0
        self.free_engines = link.copy_engines
        self.queue: deque[ActiveFlow] = deque()
        self.load = 0  # of flows in no group

    def load_of_groups(self) -> int:
        """The rate of all flows of groups."""
        return sum(crossing.count * crossing.group.rate for crossing in self.crossings.values())

    def follow_pace(self, now: int) -> int | None:
        """Takes the capacity of this instant; returns when the next change comes, if it is not waited for already."""
        if self.pace is None or self.watched_to > now:
            return None
        self.capacity = int(self.link.bandwidth_bytes_per_s * UNITS / self.pace.factor(now))
        change = self.pace.next_change(now)
        if change is not None:
            self.watched_to = change
        return change

    def alone_ns(self, size_bytes: int, now: int) -> int:
        """Nanoseconds for which bytes would use the link from now on if they had it to themselves."""
        if self.pace is None:
            return transfer_ns(size_bytes, self.link.bandwidth_bytes_per_s)
        return self.pace.end(now, Fraction(size_bytes * NS, self.link.bandwidth_bytes_per_s)) - now
