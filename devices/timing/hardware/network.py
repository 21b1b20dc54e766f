"""Transfers on the simulated clock: they wait for copy engines, then share the links of their routes max-min fair.

    request    waits for a copy engine of each GPU whose link to the host it takes, behind earlier requests for it
    start      holds the engines, each for bytes / rate of its own link; the latency of the route begins
    flow       after the latency, bytes move at the fair rate, found anew when flows come or go
    arrival    the last byte is there, rounded up to a whole nanosecond

Two transfers of 1000 bytes over a link of 1 byte/ns with a latency of 10 ns, asked for at 0 and at 500:

    ns      10           510                      1510          2010
    first   |--- 1/ns ---|-------- 1/2 ns --------|  arrives
    second               |-------- 1/2 ns --------|--- 1/ns ----|  arrives

Starts and new rates belong to the second half of an instant, arrivals to the first; rates are found once, after all
starts and ends of the instant. Transfers of one instant are handled in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol

from simpy import Environment, Event

from ...profiles import Profiles
from ...topology import Link, Route
from .fair_shares import FairShares
from .flow_groups import ActiveFlow, FlowGroup, Path
from .instants import Instants
from .port_loads import spans_of
from .ports import NS, UNITS, WHOLE, ActiveLink
from .profile import Profile
from .streams import RowName
from .under_way import flows_under_way, waiting_for_engines

if TYPE_CHECKING:
    from ..collectives.plan import FlowPhase

_PACE, _BEGIN, _END, _RELEASE = range(4)
_OF_SOME, _OF_PORT = -2, -1  # in place of a transfer: first become paths and groups the ends of their flows
_FEW = 64  # entries of the calendar that are not worth a search for stale ones


_CalendarEntry = tuple[int, int, int, int, ActiveFlow | ActiveLink | Path | FlowGroup]
"""of the calendar: instant, transfer, what happens, number of the entry, to whom it happens

An end is stale when its path or group has got another one since, and so a higher `entry`.
"""


class Listener(Protocol):
    """Who is told what becomes of transfers."""

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """A transfer starts; `cause_transfer` held the copy engine that it waited for, -1 if it did not wait."""

    def arrived(self, transfer: int) -> None:
        """The last byte of a transfer arrives now."""


class Network:
    """The links of a cluster in use. Transfers are told apart by their numbers."""

    def __init__(self, env: Environment, listener: Listener, profile: Profile | None = None) -> None:
        """`profile` says when links carry less than their models say."""
        self.bottlenecks: dict[int, Link] = {}
        """by transfer that has arrived: what limited it for longest, where that is not the slowest link of its route"""
        self._instants = Instants(env)
        self._listener = listener
        self._pace_of = (profile or Profile(Profiles())).pace_of
        self._ports: dict[Link, ActiveLink] = {}
        self._port_of: dict[int, ActiveLink] = {}  # by identity of the link, which a route keeps
        self._by_name: dict[str, ActiveLink] = {}
        # By identity of the route, which the path keeps (hashing one takes longer), and weight.
        self._paths: dict[tuple[int, int], Path] = {}
        self._requests: list[ActiveFlow] = []
        self._released: list[tuple[ActiveLink, int]] = []  # a copy engine, and the transfer that held it
        self._shares = FairShares()
        self._is_asked = False
        self._calendar: list[_CalendarEntry] = []
        self._entries = 0
        self._most_entries = _FEW  # beyond these, stale ones are looked for
        self._alarms: list[int] = []  # when the clock will stop, a heap without equal instants

    def request(self, transfer: int, route: Route, size_bytes: int) -> None:
        """Asks now for a transfer; of 0 bytes it takes the latency of the route and nothing else."""
        now = self._instants.now()
        self._requests.append(ActiveFlow(transfer, self._path(route), size_bytes, now))
        self._ask()

    def flow(self, transfers: Sequence[int], routes: Sequence[Route], phase: FlowPhase) -> None:
        """Begins flows of a phase of a collective now: no latency, no copy engines, only `arrived` is called.

        They use the rate that they get for as long as the phase takes alone, and carry the bytes that they move.
        """
        work = phase.alone_ns * (phase.rate * UNITS // phase.shares)
        weight = min(round(phase.moved_bytes * NS * UNITS * WHOLE / work), WHOLE)
        now = self._instants.now()
        for transfer, route in zip(transfers, routes, strict=True):
            self._begin(ActiveFlow(transfer, self._path(route, weight), 1, now, work), now)
        self._ask()

    @property
    def is_idle(self) -> bool:
        """Whether no transfer is under way or waits."""
        return not (self._requests or self._released or self._shares.needs_search or self._calendar)

    def loads(self, link: str) -> list[tuple[int, int, float]]:
        """(from, to, bytes/s) of a link by name, in order, without the times in which it carries nothing."""
        instants = self._shares.instants
        return spans_of((instants[search], load) for search, load in self.load_changes(link))

    def load_changes(self, link: str) -> Iterable[tuple[int, int]]:
        """(search for rates, load from then on in units of `ports`) of a link by name, in order."""
        port = self._by_name.get(link)
        return () if port is None else self._shares.loads.changes(port, self._shares.searches)

    @property
    def searches(self) -> Sequence[int]:
        """By search for rates its instant."""
        return self._shares.instants

    def state(self, name: RowName) -> Hashable | None:
        """Everything that decides how transfers go on, relative to the present; None while rates have to be found.

        Two equal states, transfers told by `name`, go on alike as long as no link changes its pace: rates and ends
        follow from the flows under way.
        """
        if self.is_idle:
            return ()
        if self._requests or self._released or self._shares.needs_search:
            return None
        self._shares.close()  # so that what is to come is told from what has been
        now = self._instants.now()
        coming = [
            (at - now, name(transfer), what, id(subject.path if isinstance(subject, ActiveFlow) else subject))
            for at, transfer, what, _, subject in sorted(self._calendar, key=itemgetter(0, 1, 2, 3))
            if what in (_BEGIN, _RELEASE)
        ]
        flows = flows_under_way(self._paths.values(), name, now)
        return tuple(coming), flows, waiting_for_engines(self._ports.values(), name, now)

    def _path(self, route: Route, weight: int = WHOLE) -> Path:
        path = self._paths.get((id(route), weight))
        if path is None:
            port_of = self._port_of
            ports = tuple([port_of.get(id(link)) or self._port(link) for link in route.links])
            if len(set(ports)) < len(ports):
                ports = tuple(dict.fromkeys(ports))
            path = self._paths[id(route), weight] = Path(len(self._paths), route, ports, weight)
        return path

    def _port(self, link: Link) -> ActiveLink:
        port = self._ports.get(link)
        if port is None:
            port = self._ports[link] = self._by_name[link.name] = ActiveLink(link, self._pace_of(link))
        self._port_of[id(link)] = port
        return port

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._second_half)

    def _second_half(self) -> None:
        self._is_asked = False
        now = self._instants.now()
        if self._requests or self._released:
            self._start_transfers(now)
        if self._shares.needs_search:
            groups = self._shares.find(now)
            if groups:
                self._follow_groups(groups)
        else:
            self._shares.close()  # what begins in another second half of this instant is of another search
        self._follow_paths()
        self._sleep(now)

    def _sleep(self, now: int) -> None:
        """Sees to it that the clock stops at the next entry of the calendar, once."""
        calendar, alarms = self._calendar, self._alarms
        if len(calendar) > self._most_entries:
            calendar[:] = [entry for entry in calendar if entry[2] != _END or entry[3] == entry[4].entry]
            heapify(calendar)
            self._most_entries = max(_FEW, 2 * len(calendar))
        while calendar:
            first = calendar[0]
            if first[2] != _END or first[3] == first[4].entry:
                if not alarms or first[0] < alarms[0]:
                    heappush(alarms, first[0])
                    self._instants.after(first[0] - now, self._wake)
                return
            heappop(calendar)

    def _wake(self, event: Event) -> None:
        """Does what the calendar has for this instant."""
        now, calendar = self._instants.now(), self._calendar
        heappop(self._alarms)
        while calendar and calendar[0][0] <= now:
            _, transfer, what, entry, subject = heappop(calendar)
            if isinstance(subject, ActiveFlow):
                if what == _BEGIN:
                    self._begin(subject, now)
                elif entry == subject.entry:
                    self._end(subject, now)
            elif isinstance(subject, Path):
                if entry == subject.entry:
                    if transfer >= 0:
                        self._end(subject.ends.pop()[2], now)
                    else:
                        self._end_some(subject.take_ended(now), now)
            elif isinstance(subject, FlowGroup):
                if entry == subject.entry:
                    self._end_some(subject.take_ended(now), now)
            elif what == _RELEASE:
                self._released.append((subject, transfer))
            elif subject.flows:
                self._follow_pace(subject, now)
                self._shares.repace(subject, now)
        if self._shares.needs_search or self._released:
            self._ask()
        elif not self._is_asked:
            self._follow_paths()
            self._sleep(now)

    def _add(self, at: int, transfer: int, what: int, subject: ActiveFlow | ActiveLink) -> int:
        """Writes into the calendar; returns the number of the entry."""
        self._entries += 1
        heappush(self._calendar, (at, transfer, what, self._entries, subject))
        return self._entries

    def _follow_groups(self, groups: Iterable[FlowGroup]) -> None:
        """Sees to it that the calendar has when the next flow of each group ends."""
        calendar, entries = self._calendar, self._entries
        for group in groups:
            at = group.next_end_ns()
            if at is not None and at != group.wakes_at:
                entries += 1
                group.wakes_at, group.entry = at, entries
                heappush(calendar, (at, _OF_SOME, _END, entries, group))
        self._entries = entries

    def _follow_paths(self) -> None:
        """The same for the paths that are in no group, of which most have one flow."""
        ends = self._shares.ends_of_few
        if not ends:
            return
        calendar, entries = self._calendar, self._entries
        for at, path in ends:
            if path.rate:  # else it is in a group now
                entries += 1
                path.entry = entries
                transfer = path.ends[0][2].transfer if len(path.ends) == 1 else _OF_SOME
                heappush(calendar, (at, transfer, _END, entries, path))
        self._entries = entries
        ends.clear()

    def _follow_pace(self, port: ActiveLink, now: int) -> None:
        change = port.follow_pace(now)
        if change is not None:
            self._add(change, _OF_PORT, _PACE, port)

    def _start_transfers(self, now: int) -> None:
        """Starts the transfers that are next at all their copy engines, in the order of request and number."""
        if len(self._requests) == 1 and not self._released and not _engines(self._requests[0]):
            self._start(self._requests.pop(), now, -1)
            return
        waiting: list[tuple[int, int, int, ActiveFlow]] = []  # request, number, who gave an engine free, transfer
        for port, holder in self._released:
            port.free_engines += 1
            if port.queue:
                flow = port.queue[0]
                waiting.append((flow.requested_ns, flow.transfer, holder, flow))
        for flow in sorted(self._requests, key=_number):
            waiting.append((now, flow.transfer, -1, flow))
            for port in _engines(flow):
                port.queue.append(flow)
        self._requests, self._released = [], []
        heapify(waiting)
        while waiting:
            requested, _, holder, flow = heappop(waiting)
            engines = _engines(flow)
            if engines and [
                port for port in engines if not (port.free_engines and port.queue and port.queue[0] is flow)
            ]:
                continue
            for port in engines:
                self._hold(port, flow, now)
                if port.queue:
                    after = port.queue[0]
                    heappush(waiting, (after.requested_ns, after.transfer, holder, after))
            self._start(flow, now, -1 if requested == now else holder)

    def _hold(self, port: ActiveLink, flow: ActiveFlow, now: int) -> None:
        """The flow holds a copy engine for the time that its bytes would take on that link alone."""
        port.queue.popleft()
        port.free_engines -= 1
        self._add(now + port.alone_ns(flow.size_bytes, now), flow.transfer, _RELEASE, port)

    def _start(self, flow: ActiveFlow, now: int, cause: int) -> None:
        self._listener.started(flow.transfer, now, cause)
        path = flow.path
        if path.latency_ns or not flow.size_bytes or not path.ports:
            self._add(now + path.latency_ns, flow.transfer, _BEGIN, flow)
        else:
            self._begin(flow, now)

    def _begin(self, flow: ActiveFlow, now: int) -> None:
        """The first byte moves; what has no bytes to move has arrived."""
        ports = flow.path.ports
        if not flow.size_bytes or not ports:
            self._listener.arrived(flow.transfer)
            return
        if flow.path.is_paced:
            for port in ports:
                self._follow_pace(port, now)
        self._shares.begin(flow, now)

    def _end_some(self, flows: Sequence[ActiveFlow], now: int) -> None:
        """Flows end in the order of their numbers, with all else that the calendar has for this instant."""
        if len(flows) == 1 and (not self._calendar or self._calendar[0][0] > now):
            self._end(flows[0], now)
        else:
            for flow in flows:
                flow.entry = self._add(now, flow.transfer, _END, flow)

    def _end(self, flow: ActiveFlow, now: int) -> None:
        bottleneck = flow.bottleneck(now)
        if bottleneck is not flow.path.slowest:
            self.bottlenecks[flow.transfer] = bottleneck.link
        self._shares.end(flow, now)
        self._listener.arrived(flow.transfer)


def _number(flow: ActiveFlow) -> int:
    return flow.transfer


def _engines(flow: ActiveFlow) -> tuple[ActiveLink, ...]:
    """The ports whose copy engines the transfer needs."""
    return flow.path.engines if flow.size_bytes else ()
