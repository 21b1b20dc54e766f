"""Links at work and the flows on them: fair rates in integers, found for the flows that can have changed.

A rate counts units of 1 / `UNITS` bytes/s, which up to 40 flows divide without a rest. So a flow that shares ends
exactly when arithmetic says: floating-point numbers would round, and an end that rounds up by 1e-16 of its time is a
nanosecond late. Where a rate has a rest, a flow loses less than 1e-15 bytes/s.

The rates are those of `flows`, found by the same filling. Only flows that are joined by shared links to a port where
something changed can have other rates than before, and there are few of them: plain loops beat numpy below a hundred.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from fractions import Fraction
from math import lcm

from ...link import transfer_ns
from ...topology import Link, Route
from .profile import Pace

UNITS = lcm(*range(1, 41))
NS = 10**9


class ActiveLink:
    """A link at work: its flows, the copies that wait for its engines, its load over time."""

    __slots__ = (
        "capacity",
        "flows",
        "free_engines",
        "left",
        "link",
        "load",
        "loads",
        "mark",
        "pace",
        "queue",
        "times",
        "waits",
        "watched_to",
    )

    def __init__(self, link: Link, pace: Pace | None = None) -> None:
        self.link = link
        self.pace = pace
        self.watched_to = -1  # the last change of pace that the calendar knows
        self.capacity = link.bandwidth_bytes_per_s * UNITS
        self.flows: dict[ActiveFlow, None] = {}  # a set that keeps its order
        self.left = 0  # while rates are found: the capacity that is not given away
        self.waits = 0  # while rates are found: the flows without a rate
        self.mark = 0  # the last search that came here
        self.free_engines = link.copy_engines
        self.queue: deque[ActiveFlow] = deque()
        self.load = 0
        self.times = array("q")
        self.loads = array("d")

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

    def record_load(self, now: int, load: int) -> None:
        """Notes that the link carries `load` from now on."""
        self.load = load
        if self.times and self.times[-1] == now:
            self.loads[-1] = load / UNITS
        else:
            self.times.append(now)
            self.loads.append(load / UNITS)


class Path:
    """The ports of a route, and those among them whose copy engines its transfers need."""

    __slots__ = ("engines", "latency_ns", "ports", "route", "slowest")

    def __init__(self, route: Route, ports: tuple[ActiveLink, ...]) -> None:
        self.route = route
        self.ports = ports
        self.engines = tuple(port for port in ports if port.link.copy_engines)
        self.latency_ns = route.latency_ns
        self.slowest = min(ports, key=lambda port: port.capacity, default=None)


class ActiveFlow:
    """A transfer, from its request to its arrival; `bytes_left` as of `since_ns`, in nanoseconds of a unit of rate."""

    __slots__ = (
        "bytes_left",
        "entry",
        "fair_rate",
        "limit",
        "limited_by",
        "limited_ns",
        "limited_since_ns",
        "mark",
        "path",
        "rate",
        "requested_ns",
        "since_ns",
        "size_bytes",
        "transfer",
    )

    def __init__(self, transfer: int, path: Path, size_bytes: int, now: int) -> None:
        self.transfer = transfer
        self.path = path
        self.size_bytes = size_bytes
        self.requested_ns = now
        self.bytes_left = size_bytes * NS * UNITS
        self.since_ns = now
        self.rate = 0
        self.fair_rate = 0  # while rates are found: 0 before it has one
        self.entry = 0  # the number of its entry in the calendar that counts
        self.mark = 0  # the last search that came here
        self.limit: ActiveLink | None = None  # while rates are found: the port that limits the rate
        self.limited_by: ActiveLink | None = None
        self.limited_since_ns = 0
        self.limited_ns: dict[ActiveLink, int] = {}  # for how long ports have limited it, without the present one

    def change_rate(self, now: int) -> int:
        """Moves bytes at the old rate until now, takes the fair rate, and returns when the last byte arrives."""
        left = self.bytes_left = self.bytes_left - self.rate * (now - self.since_ns)
        self.since_ns = now
        rate = self.rate = self.fair_rate
        return now - (-left // rate)

    def change_limit(self, now: int) -> None:
        """From now on another port limits the rate."""
        if self.limited_by is not None:
            before = self.limited_ns.get(self.limited_by, 0)
            self.limited_ns[self.limited_by] = before + now - self.limited_since_ns
        self.limited_by, self.limited_since_ns = self.limit, now

    def bottleneck(self, now: int) -> ActiveLink | None:
        """The port that has limited it for longest until now; None if none has."""
        if self.limited_ns:
            self.change_limit(now)
            return max(self.limited_ns, key=self.limited_ns.__getitem__)
        return self.limited_by


def joined(changed: Iterable[ActiveLink], mark: int) -> tuple[list[ActiveLink], list[ActiveFlow]]:
    """The ports and flows that shared links join to ports where something changed; `mark` is new for each search."""
    ports: list[ActiveLink] = []
    flows: list[ActiveFlow] = []
    for port in changed:
        if port.mark != mark:
            port.mark = mark
            ports.append(port)
    for port in ports:  # grows while it is read
        for flow in port.flows:
            if flow.mark != mark:
                flow.mark = mark
                flows.append(flow)
                for other in flow.path.ports:
                    if other.mark != mark:
                        other.mark = mark
                        ports.append(other)
    return ports, flows


def find_fair_rates(ports: list[ActiveLink], flows: list[ActiveFlow]) -> None:
    """Sets `fair_rate` and the bottleneck of every flow, and what is `left` of every port."""
    for flow in flows:
        flow.fair_rate = 0
    for port in ports:
        port.left, port.waits = port.capacity, len(port.flows)
    waiting = [port for port in ports if port.waits]
    while waiting:
        shares = [port.left // port.waits for port in waiting]
        share = min(shares)
        for port, least in zip(waiting, shares, strict=True):
            if least == share and port.waits:
                _settle(port, share)
        waiting = [port for port in waiting if port.waits]


def _settle(bottleneck: ActiveLink, share: int) -> None:
    """Gives the share to the flows of a port that have no rate yet, and takes it from the ports of their routes."""
    for flow in bottleneck.flows:
        if not flow.fair_rate:
            flow.fair_rate = share
            flow.limit = bottleneck
            for port in flow.path.ports:
                port.left -= share
                port.waits -= 1
