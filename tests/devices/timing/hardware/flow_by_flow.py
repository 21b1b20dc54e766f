"""Max-min fair transfers, flow by flow: what `Network` computes, the slow and plain way, as an oracle for it.

At each start and end all flows that links join to it get their rates anew, each by itself, and every port writes down
its load. The clock, the copy engines and the order of events are those of `network`; rates are whole numbers as there,
so that ends, order, loads and bottlenecks have to be equal.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterable
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import lcm

from simpy import Environment, Event

from partita.devices.link import transfer_ns
from partita.devices.profiles import Profiles
from partita.devices.timing.hardware.instants import Instants
from partita.devices.timing.hardware.network import Listener
from partita.devices.timing.hardware.profile import Pace, Profile
from partita.devices.topology import Link, Route

_NEVER = 1 << 63
_PACE, _BEGIN, _END, _RELEASE = range(4)
UNITS = lcm(*range(1, 41))
NS = 10**9


class PlainPort:
    """A link at work: its flows, the copies that wait for its engines, its load over time."""

    def __init__(self, link: Link, pace: Pace | None = None) -> None:
        self.link = link
        self.pace = pace
        self.watched_to = -1  # the last change of pace that the calendar knows
        self.capacity = link.bandwidth_bytes_per_s * UNITS
        self.flows: dict[PlainFlow, None] = {}  # a set that keeps its order
        self.left = 0  # while rates are found: the capacity that is not given away
        self.waits = 0  # while rates are found: the flows without a rate
        self.mark = 0  # the last search that came here
        self.free_engines = link.copy_engines
        self.queue: deque[PlainFlow] = deque()
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


class PlainPath:
    """The ports of a route, and those among them whose copy engines its transfers need."""

    def __init__(self, route: Route, ports: tuple[PlainPort, ...]) -> None:
        self.route = route
        self.ports = ports
        self.engines = tuple(port for port in ports if port.link.copy_engines)
        self.latency_ns = route.latency_ns
        self.slowest = min(ports, key=lambda port: port.capacity, default=None)


class PlainFlow:
    """A transfer, from its request to its arrival; `bytes_left` as of `since_ns`, in nanoseconds of a unit of rate."""

    def __init__(self, transfer: int, path: PlainPath, size_bytes: int, now: int) -> None:
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
        self.limit: PlainPort | None = None  # while rates are found: the port that limits the rate
        self.limited_by: PlainPort | None = None
        self.limited_since_ns = 0
        self.limited_ns: dict[PlainPort, int] = {}  # for how long ports have limited it, without the present one

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

    def bottleneck(self, now: int) -> PlainPort | None:
        """The port that has limited it for longest until now; None if none has."""
        if self.limited_ns:
            self.change_limit(now)
            return max(self.limited_ns, key=self.limited_ns.__getitem__)
        return self.limited_by


def joined(changed: Iterable[PlainPort], mark: int) -> tuple[list[PlainPort], list[PlainFlow]]:
    """The ports and flows that shared links join to ports where something changed; `mark` is new for each search."""
    ports: list[PlainPort] = []
    flows: list[PlainFlow] = []
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


def find_fair_rates(ports: list[PlainPort], flows: list[PlainFlow]) -> None:
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


def _settle(bottleneck: PlainPort, share: int) -> None:
    """Gives the share to the flows of a port that have no rate yet, and takes it from the ports of their routes."""
    for flow in bottleneck.flows:
        if not flow.fair_rate:
            flow.fair_rate = share
            flow.limit = bottleneck
            for port in flow.path.ports:
                port.left -= share
                port.waits -= 1


_PlainEntry = tuple[int, int, int, int, PlainFlow | PlainPort]
"""of the calendar: instant, transfer, what happens, number of the entry, flow or port that it happens to"""


class FlowByFlow:
    """The links of a cluster in use. Transfers are told apart by their numbers."""

    def __init__(self, env: Environment, listener: Listener, profile: Profile | None = None) -> None:
        """`profile` says when links carry less than their models say."""
        self.bottlenecks: dict[int, Link] = {}
        """by transfer that has arrived: what limited it for longest, where that is not the slowest link of its route"""
        self._instants = Instants(env)
        self._listener = listener
        self._pace_of = (profile or Profile(Profiles())).pace_of
        self._ports: dict[Link, PlainPort] = {}
        self._by_name: dict[str, PlainPort] = {}
        self._paths: dict[
            int, PlainPath
        ] = {}  # by identity of the route, which the path keeps: hashing one takes longer
        self._requests: list[PlainFlow] = []
        self._released: list[tuple[PlainPort, int]] = []  # a copy engine, and the transfer that held it
        self._changed: list[PlainPort] = []  # where flows came or went
        self._searches = 0
        self._is_asked = False
        self._calendar: list[_PlainEntry] = []
        self._entries = 0
        self._wakes_at = _NEVER

    def request(self, transfer: int, route: Route, size_bytes: int) -> None:
        """Asks now for a transfer; of 0 bytes it takes the latency of the route and nothing else."""
        now = self._instants.now()
        self._requests.append(PlainFlow(transfer, self._path(route), size_bytes, now))
        self._ask()

    @property
    def is_idle(self) -> bool:
        """Whether no transfer is under way or waits."""
        return not (self._requests or self._released or self._changed or self._calendar)

    def loads(self, link: str) -> list[tuple[int, int, float]]:
        """(from, to, bytes/s) of a link by name, in order, without the times in which it carries nothing."""
        port = self._by_name.get(link)
        if port is None:
            return []
        changes = pairwise(zip(port.times, port.loads, strict=True))
        return [(start, end, load) for (start, load), (end, _) in changes if load]

    def _path(self, route: Route) -> PlainPath:
        path = self._paths.get(id(route))
        if path is None:
            for link in route.links:
                if link not in self._ports:
                    self._ports[link] = self._by_name[link.name] = PlainPort(link, self._pace_of(link))
            ports = tuple(dict.fromkeys(self._ports[link] for link in route.links))
            path = self._paths[id(route)] = PlainPath(route, ports)
        return path

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._second_half)

    def _second_half(self) -> None:
        self._is_asked = False
        now = self._instants.now()
        if self._requests or self._released:
            self._start_transfers(now)
        if self._changed:
            self._find_rates(now)
        self._sleep(now)

    def _sleep(self, now: int) -> None:
        """Sees to it that the clock stops at the next entry of the calendar."""
        calendar = self._calendar
        while calendar and calendar[0][2] == _END and _is_stale(calendar[0]):
            heappop(calendar)
        if calendar and calendar[0][0] < self._wakes_at:
            self._wakes_at = calendar[0][0]
            self._instants.after(self._wakes_at - now, self._wake)

    def _wake(self, event: Event) -> None:
        """Does what the calendar has for this instant."""
        now, calendar = self._instants.now(), self._calendar
        self._wakes_at = _NEVER
        while calendar and calendar[0][0] <= now:
            _, transfer, what, entry, subject = heappop(calendar)
            if isinstance(subject, PlainPort):
                if what == _RELEASE:
                    self._released.append((subject, transfer))
                elif subject.flows:
                    self._follow_pace(subject, now)
                    self._changed.append(subject)
            elif what == _BEGIN:
                self._begin(subject)
            elif entry == subject.entry:
                self._end(subject, now)
        if not self._changed and not self._released:
            self._sleep(now)
        elif not self._is_asked and self._instants.is_last():
            self._second_half()
        else:
            self._ask()

    def _add(self, at: int, transfer: int, what: int, subject: PlainFlow | PlainPort) -> int:
        """Writes into the calendar; returns the number of the entry."""
        self._entries += 1
        heappush(self._calendar, (at, transfer, what, self._entries, subject))
        return self._entries

    def _follow_pace(self, port: PlainPort, now: int) -> None:
        change = port.follow_pace(now)
        if change is not None:
            self._add(change, -1, _PACE, port)

    def _start_transfers(self, now: int) -> None:
        """Starts the transfers that are next at all their copy engines, in the order of request and number."""
        waiting: list[tuple[int, int, int]] = []  # request, transfer, who gave an engine free
        flows: dict[int, PlainFlow] = {}
        for port, holder in self._released:
            port.free_engines += 1
            if port.queue:
                flows[port.queue[0].transfer] = flow = port.queue[0]
                waiting.append((flow.requested_ns, flow.transfer, holder))
        for flow in sorted(self._requests, key=_number):
            flows[flow.transfer] = flow
            waiting.append((now, flow.transfer, -1))
            for port in _engines(flow):
                port.queue.append(flow)
        self._requests, self._released = [], []
        heapify(waiting)
        while waiting:
            requested, transfer, holder = heappop(waiting)
            flow, engines = flows[transfer], _engines(flows[transfer])
            if all(port.free_engines and port.queue and port.queue[0] is flow for port in engines):
                for port in engines:
                    self._hold(port, flow, now)
                    if port.queue:
                        flows[port.queue[0].transfer] = after = port.queue[0]
                        heappush(waiting, (after.requested_ns, after.transfer, holder))
                self._start(flow, now, -1 if requested == now else holder)

    def _hold(self, port: PlainPort, flow: PlainFlow, now: int) -> None:
        """The flow holds a copy engine for the time that its bytes would take on that link alone."""
        port.queue.popleft()
        port.free_engines -= 1
        self._add(now + port.alone_ns(flow.size_bytes, now), flow.transfer, _RELEASE, port)

    def _start(self, flow: PlainFlow, now: int, cause: int) -> None:
        self._listener.started(flow.transfer, now, cause)
        path = flow.path
        if path.latency_ns or not flow.size_bytes or not path.ports:
            self._add(now + path.latency_ns, flow.transfer, _BEGIN, flow)
        else:
            self._begin(flow)

    def _begin(self, flow: PlainFlow) -> None:
        """The first byte moves; what has no bytes to move has arrived."""
        ports = flow.path.ports
        if not flow.size_bytes or not ports:
            self._listener.arrived(flow.transfer)
            return
        now = flow.since_ns = self._instants.now()
        for port in ports:
            port.flows[flow] = None
            if port.pace is not None:
                self._follow_pace(port, now)
        self._changed += ports

    def _end(self, flow: PlainFlow, now: int) -> None:
        path = flow.path
        for port in path.ports:
            del port.flows[flow]
        self._changed += path.ports
        bottleneck = flow.bottleneck(now)
        if bottleneck is not None and bottleneck is not path.slowest:
            self.bottlenecks[flow.transfer] = bottleneck.link
        self._listener.arrived(flow.transfer)

    def _find_rates(self, now: int) -> None:
        changed, self._changed = self._changed, []
        self._searches += 1
        ports, flows = joined(changed, self._searches)
        find_fair_rates(ports, flows)
        for flow in flows:
            if flow.fair_rate != flow.rate:
                flow.entry = self._add(flow.change_rate(now), flow.transfer, _END, flow)
            if flow.limit is not flow.limited_by:
                flow.change_limit(now)
        for port in ports:
            if port.load != port.capacity - port.left:
                port.record_load(now, port.capacity - port.left)


def _is_stale(end: _PlainEntry) -> bool:
    """Whether a flow has got another rate since its end was written into the calendar."""
    return isinstance(end[4], PlainFlow) and end[3] != end[4].entry


def _number(flow: PlainFlow) -> int:
    return flow.transfer


def _engines(flow: PlainFlow) -> tuple[PlainPort, ...]:
    """The ports whose copy engines the transfer needs."""
    return flow.path.engines if flow.size_bytes else ()
