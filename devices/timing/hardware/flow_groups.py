"""Flows, the paths that they take, and groups of paths that have one rate for the same reasons.

Flows over the same ports always have one rate, and so have paths that cross the same watched ports: no other port
limits them. They form a group with one *virtual time*, the integral of its rate, a whole number. A flow ends when the
virtual time has grown by its bytes. So a new rate of a thousand flows is one addition, and one new end for the
calendar:

    rate      | 6 |       3       |     of a group; units of rate
    ns        0   10              30
    virtual   0   60              120   a flow that began at 0 with 100 units of work ends at 24 (60 + 3 * 14 >= 100)

Paths have virtual times of their own, as they go from group to group: that of their group plus an offset.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

from ...topology import Route
from .equals import SharedRoute
from .ports import NS, UNITS, WHOLE, ActiveLink, Crossing

_FEW = 16  # entries of a heap that are not worth a search for stale ones


class ActiveFlow:
    """A transfer, from its request to its arrival.

    `work` says by how much the virtual time of its path has to grow until it ends, in nanoseconds of a unit of rate.
    """

    __slots__ = ("began_ns", "entry", "first_limit", "number", "path", "requested_ns", "size_bytes", "transfer", "work")

    def __init__(self, transfer: int, path: Path, size_bytes: int, now: int, work: int | None = None) -> None:
        self.transfer = transfer
        self.path = path
        self.size_bytes = size_bytes
        self.work = size_bytes * NS * UNITS if work is None else work
        self.requested_ns = now
        self.entry = 0  # the entry in the calendar for its end
        self.began_ns = 0  # when its first byte moved
        self.number = 0  # in the order in which flows begin
        self.first_limit = 0  # index of what limits it first in the history of its path

    def bottleneck(self, now: int) -> ActiveLink:
        """The port that has limited it for longest until now."""
        path = self.path
        limits = path.limits if path.group is None else path.limits_until_now()
        if len(limits) - self.first_limit == 1:
            return limits[-1][1]
        limits = limits[self.first_limit :]
        limited_ns: dict[ActiveLink, int] = {}
        since_ns = self.began_ns
        for (_, port), (until_ns, _) in zip(limits, [*limits[1:], (now, None)], strict=True):
            limited_ns[port] = limited_ns.get(port, 0) + until_ns - since_ns
            since_ns = until_ns
        return max(limited_ns, key=limited_ns.__getitem__)


class Path:
    """The ports of a route, its flows and when they end; transfers need a copy engine of each of `engines`.

    `weight` says, in parts of `WHOLE`, how much of their rate is bytes that they carry. A flow of a path with `counts`
    stands for several, of which by port so many cross it, as `SharedRoute.counts` has it.
    """

    __slots__ = (
        "counts",
        "crossings",
        "ends",
        "engines",
        "entry",
        "fair_rate",
        "flows",
        "group",
        "is_paced",
        "latency_ns",
        "limit",
        "limits",
        "mark",
        "number",
        "offset",
        "oldest",
        "ports",
        "rate",
        "route",
        "seen",
        "since_ns",
        "slowest",
        "virtual",
        "weight",
    )

    def __init__(self, number: int, route: Route, ports: tuple[ActiveLink, ...], weight: int = WHOLE) -> None:
        self.number = number
        self.weight = weight
        self.route = route
        self.ports = ports
        self.latency_ns = route.latency_ns
        self.engines: tuple[ActiveLink, ...] = ()
        self.is_paced = False  # whether a port has another capacity at times
        self.slowest: ActiveLink | None = None  # the first one of the least capacity
        for port in ports:  # in one pass, as some clusters have a path for most transfers
            if self.slowest is None or port.capacity < self.slowest.capacity:
                self.slowest = port
            if port.has_engines:
                self.engines += (port,)
            if port.pace is not None:
                self.is_paced = True
        self.counts = _counts(route) if isinstance(route, SharedRoute) else ()
        self.flows: dict[ActiveFlow, None] = {}  # a set that keeps its order
        self.ends: list[tuple[int, int, ActiveFlow]] = []  # a heap: virtual time, number of the flow
        self.limits: list[tuple[int, ActiveLink]] = []  # since when which port limits it
        self.mark = 0  # the last search that came here
        # In a group:
        self.group: FlowGroup | None = None
        self.crossings: list[Crossing] = []  # of its group, by port
        self.offset = 0  # its virtual time, less that of its group
        self.seen = 0  # how many limits of its group were before it came, or are in its own
        # In none:
        self.rate = self.virtual = self.since_ns = 0
        self.fair_rate = 0  # while rates are found: 0 before it has one
        self.limit: ActiveLink | None = None  # the port that gave it its rate
        self.oldest = 0  # the number of its flow that began first
        self.entry = 0  # the entry in the calendar that counts

    def virtual_at(self, now: int) -> int:
        """Its virtual time."""
        if self.group is None:
            return self.virtual + self.rate * (now - self.since_ns)
        return self.group.virtual_at(now) + self.offset

    def stop(self) -> None:
        """Its last flow has left."""
        self.rate = self.virtual = 0
        self.limits.clear()

    def take_ended(self, now: int) -> list[ActiveFlow]:
        """Takes out the flows whose last byte arrives now; it is in no group."""
        virtual, ends, ended = self.virtual_at(now), self.ends, list[ActiveFlow]()
        while ends and ends[0][0] <= virtual:
            ended.append(heappop(ends)[2])
        return ended

    def take_limit_of_group(self, now: int) -> None:
        """What limits the group that it has come into limits it from now on."""
        assert self.group is not None  # as it has come into one
        limits = self.group.limits
        limit = limits[-1][1]
        if not self.limits or self.limits[-1][1] is not limit:
            self.limits.append((now, limit))
        self.seen = len(limits)

    def limits_until_now(self) -> list[tuple[int, ActiveLink]]:
        """Since when which port limits it, with what its group has learnt since it came."""
        if self.group is not None and self.seen < len(self.group.limits):
            self.limits += self.group.limits[self.seen :]
            self.seen = len(self.group.limits)
        return self.limits


def _counts(route: SharedRoute) -> tuple[int, ...]:
    """The counts of a route, none if all are 1."""
    return route.counts if any(count != 1 for count in route.counts) else ()


class FlowGroup:
    """Paths that cross the same watched ports."""

    __slots__ = (
        "bounds",
        "crossings",
        "ends",
        "entry",
        "fair_rate",
        "flows",
        "full",
        "is_tied",
        "is_weighted",
        "limit",
        "limits",
        "mark",
        "noted",
        "paths",
        "ports",
        "rate",
        "rates",
        "rates_in",
        "since_ns",
        "virtual",
        "wakes_at",
    )

    def __init__(self, ports: tuple[ActiveLink, ...]) -> None:
        self.ports = ports
        self.paths = 0
        self.flows = 0
        self.rate = 0
        self.virtual, self.since_ns = 0, 0
        self.crossings: dict[ActiveLink, Crossing] = {}
        self.ends: list[tuple[int, int, Path]] = []  # a heap: virtual time, number of the path; some are stale
        self.bounds: list[tuple[int, int, Crossing]] = []  # a heap: what unwatched ports allow; some are stale
        self.noted = 0  # bounds so far
        self.limit: ActiveLink | None = None  # the port that limits it
        self.limits: list[tuple[int, ActiveLink]] = []  # since when which port limits it, or has limited it
        self.rates_in, self.rates = array("q"), list[int]()  # from which search on it had which rate
        self.fair_rate = 0  # while rates are found: 0 before it has one
        self.full: tuple[ActiveLink, ...] = ()  # the ports that gave it its rate at once
        self.is_weighted = False  # whether a path has `counts`: only then are they other numbers than `flows`
        self.is_tied = False  # whether its component knows that it is limited by several ports
        self.mark = 0  # the last search that came here
        self.entry, self.wakes_at = 0, 0  # the entry in the calendar that counts, and its instant

    def virtual_at(self, now: int) -> int:
        """The integral of its rate."""
        return self.virtual + self.rate * (now - self.since_ns)

    def take_rate(self, rate: int, now: int, search: int) -> None:
        """Has another rate from now on."""
        self.virtual += self.rate * (now - self.since_ns)
        self.since_ns, self.rate, self.fair_rate = now, rate, rate
        if self.rates_in and self.rates_in[-1] == search:
            self.rates[-1] = rate
        else:
            self.rates_in.append(search)
            self.rates.append(rate)

    def take_limit(self, port: ActiveLink, now: int) -> None:
        """A port limits it from now on."""
        if self.limit is not port:
            self.limit = port
            self.limits.append((now, port))

    def stop(self) -> None:
        """Its last path has left."""
        self.limits.clear()
        self.limit = None
        self.entry, self.wakes_at = 0, 0

    def next_end_ns(self) -> int | None:
        """When the first of its flows ends at this rate; None if it has none."""
        ends = self.ends
        while ends:
            end, _, path = ends[0]
            if path.group is self and path.ends and path.ends[0][0] - path.offset == end:
                return self.since_ns - (self.virtual - end) // self.rate
            heappop(ends)
        return None

    def note_end(self, path: Path) -> None:
        """The first end of a path of the group is another one."""
        if len(self.ends) > 2 * self.paths + _FEW:
            current = {other for _, _, other in self.ends if other.group is self and other.ends} - {path}
            self.ends[:] = [(other.ends[0][0] - other.offset, other.number, other) for other in current]
            heapify(self.ends)
        heappush(self.ends, (path.ends[0][0] - path.offset, path.number, path))

    def take_ended(self, now: int) -> list[ActiveFlow]:
        """Takes out the flows whose last byte arrives now."""
        virtual, ends, ended = self.virtual_at(now), self.ends, list[ActiveFlow]()
        while ends and ends[0][0] <= virtual:
            end, number, path = heappop(ends)
            if path.group is not self or not path.ends or path.ends[0][0] - path.offset != end:
                continue
            while path.ends and path.ends[0][0] - path.offset <= virtual:
                ended.append(heappop(path.ends)[2])
            if path.ends:
                heappush(ends, (path.ends[0][0] - path.offset, number, path))
        return ended

    def note_bound(self, crossing: Crossing) -> None:
        """A port that is not watched allows another rate."""
        if len(self.bounds) > 2 * len(self.crossings) + _FEW:
            known = [c for c in self.crossings.values() if not c.port.is_watched and c is not crossing]
            for c in known:
                c.bound = c.allowed
            self.bounds[:] = [(c.allowed, -n, c) for n, c in enumerate(known)]
            heapify(self.bounds)
        self.noted += 1
        # Half way, so that the heap need not learn of each time that the port allows a little less.
        crossing.bound = (self.rate + crossing.allowed) // 2
        heappush(self.bounds, (crossing.bound, self.noted, crossing))
