"""Collectives on the simulated clock: members meet, wait for their streams, then move bytes together.

    member 0   joins            |-- latency --|-- phase --|
    member 1         joins      |-- latency --|-- phase --|
    member 2                joins

Every device has a communication stream for each group, on which one collective runs at a time. A collective begins when
its last member has joined and the streams of all members are free; among several that wait for a stream, the first to
be complete begins first, or the one with the highest priority, if there are any: that of the first of its members, by
row. A member that waits for others does not stop a later collective that is complete. No device
launches anything for it. All members have the same entry times; the cause is what let the last one begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ....errors import InvalidArgumentError
from .instants import Instants
from .log import KINDS, Log, Taken

if TYPE_CHECKING:
    from ..collectives.plan import CollectivePlan, FlowPhase
    from ..collectives.seats import CollectiveSeat
    from .equals import EqualFlows
    from .network import Network
    from .prioritised import PriorityOf
    from .streams import Feeder

FIRST_FLOW = 1 << 48
"""numbers of transfers from here on are flows of collectives"""


class PlanOf(Protocol):
    """Who plans collectives: from kind, devices by number and bytes."""

    def __call__(self, kind: str, devices: tuple[int, ...], size_bytes: int) -> CollectivePlan:
        """The plan; raises InvalidArgumentError for devices that no links join."""


class MemberRow(NamedTuple):
    """A node that has joined: its row, its device, its bytes, and the entry that released it."""

    row: int
    device: int
    size_bytes: int
    cause: int


Stream = tuple[int, str]
"""a communication stream: device and group"""


@dataclass(slots=True)
class Meeting:
    """A collective, from its first member on; its members are in the order in which they came, then in that of rows."""

    seat: CollectiveSeat
    members: list[MemberRow] = field(default_factory=list)
    devices: set[int] = field(default_factory=set)
    complete_ns: int = -1
    entries: list[int] = field(default_factory=list)
    """by member, once it has begun"""
    phases: deque[FlowPhase] = field(default_factory=deque)
    flows: int = 0
    """of the present phase, that have not arrived"""
    turn: int = 0
    """its number in the order in which meetings have become complete"""
    streams: list[Stream] = field(default_factory=list)
    """that it takes, by member"""

    def add(self, seat: CollectiveSeat, member: MemberRow) -> None:
        """Another member; InvalidArgumentError if it does not belong here."""
        if (seat.kind, seat.size) != (self.seat.kind, self.seat.size):
            raise InvalidArgumentError(
                f"{seat}: a member of {seat.kind} of {seat.size} meets one of {self.seat.kind} of {self.seat.size}; "
                "give each collective an instance_key of its own, and its members one group_size"
            )
        if member.device in self.devices:
            raise InvalidArgumentError(
                f"{seat}: a device comes twice in one step; give the second collective another instance_key"
            )
        self.members.append(member)
        self.streams.append((member.device, self.seat.group))
        self.devices.add(member.device)


class Collectives:
    """The collectives under way and those that wait."""

    def __init__(
        self,
        instants: Instants,
        log: Log,
        feeder: Feeder,
        network: Network,
        equals: EqualFlows,
        plan_of: PlanOf,
        shares: Callable[[int, bool], None],
        *,
        is_unlimited: bool,
        priority_of: PriorityOf | None = None,
    ) -> None:
        """`shares` is told when a device begins to take part in collectives, and when it ends to."""
        self.were_used = False
        self.begun: list[Meeting] | None = None if priority_of is None else []
        """those that have begun, in order, if they are taken by priority"""
        self._priority_of = priority_of
        self._instants = instants
        self._log = log
        self._feeder = feeder
        self._network = network
        self._equals = equals
        self._plan_of = plan_of
        self._shares = shares
        self._under_way: dict[int, int] = {}  # by device: how many collectives
        self._is_unlimited = is_unlimited
        self._open: dict[Hashable, Meeting] = {}
        self._fresh: list[Meeting] = []  # complete since the last second half
        self._waiting: dict[Stream, list[Meeting]] = {}  # complete ones, by a stream that each waits for
        self._freed: list[Meeting] = []  # those whose stream has become free
        self._turns = 0
        self._is_asked = False
        self._busy: dict[Stream, Meeting] = {}
        self._freed_by: dict[Stream, int] = {}  # the entry that had a stream last
        self._counts: dict[tuple[Hashable, Stream], int] = {}  # instances that a device's communicator has begun
        self._flows: dict[int, Meeting] = {}
        self._next_flow = FIRST_FLOW

    def join(self, step: Hashable, seat: CollectiveSeat, iterations: Hashable, member: MemberRow) -> None:
        """A member is ready. `iterations` are the numbers of those of the loops around, `step` tells steps apart.

        InvalidArgumentError for members that do not agree, and for a device twice.
        """
        self.were_used = True
        instance: Hashable = seat.instance
        if instance is None:
            count = step, (member.device, seat.group)
            instance = self._counts[count] = self._counts.get(count, 0) + 1
        key = step, seat.group, instance, iterations
        meeting = self._open.get(key)
        if meeting is None:
            meeting = self._open[key] = Meeting(seat)
        meeting.add(seat, member)
        if len(meeting.members) == seat.size:
            del self._open[key]
            meeting.complete_ns = self._instants.now()
            self._fresh.append(meeting)
            self._ask()

    def arrived(self, flow: int) -> None:
        """The last byte of a flow has arrived: goes on to the next phase after the last one."""
        meeting = self._flows.pop(flow)
        meeting.flows -= 1
        if not meeting.flows:
            self._next_phase(meeting)

    def waiting(self) -> list[Meeting]:
        """Those of which members have not come."""
        return list(self._open.values())

    def unfinished(self) -> list[int]:
        """The entries of collectives that are under way."""
        under_way = {id(meeting): meeting for meeting in self._busy.values()}.values()
        return [entry for meeting in under_way for entry in meeting.entries]

    def _ask(self) -> None:
        if not self._is_asked:
            self._is_asked = True
            self._instants.second_half(self._begin_complete)

    def _begin_complete(self) -> None:
        """Begins those whose streams are free: first those that have waited longest, those of one instant by row."""
        self._is_asked = False
        for meeting in sorted(self._fresh, key=_first_row) if len(self._fresh) > 1 else self._fresh:
            self._turns += 1
            meeting.turn = self._turns
            self._freed.append(meeting)
        waiting, self._freed, self._fresh = sorted(self._freed, key=_turn), [], []
        if self._priority_of is not None:
            waiting.sort(key=self._below)  # equal ones stay as they are
        busy = self._busy
        for meeting in waiting:
            for stream in meeting.streams:
                if stream in busy:
                    self._waiting.setdefault(stream, []).append(meeting)
                    break
            else:
                self._begin(meeting)

    def _below(self, meeting: Meeting) -> float:
        assert self._priority_of is not None  # as they are sorted by it
        return -self._priority_of(_first_row(meeting))

    def _begin(self, meeting: Meeting) -> None:
        if self.begun is not None:
            self.begun.append(meeting)
        now, members, log = self._instants.now(), meeting.members, self._log
        devices = meeting.seat.devices or tuple(sorted(meeting.devices))
        plan = self._plan_of(meeting.seat.kind, devices, max(member.size_bytes for member in members))
        meeting.phases = deque(plan.phases)
        cause = members[-1].cause
        if len(members) > 1:
            members.sort(key=_row)
            meeting.streams = [(member.device, meeting.seat.group) for member in members]
        if now > meeting.complete_ns:
            cause = max(
                (self._freed_by.get(stream, -1) for stream in meeting.streams), key=lambda e: (log.end_ns[e], e)
            )
        for member in members:
            entry = log.record(member.row * KINDS, now, now, cause)
            log.collectives[entry] = Taken(meeting.seat.group, plan)
            meeting.entries.append(entry)
        if self._is_unlimited:
            self._instants.after(plan.cost.time_ns, lambda _: self._end(meeting))
            return
        self._busy.update(dict.fromkeys(meeting.streams, meeting))
        for device in sorted(meeting.devices):
            self._count(device, 1)
        self._instants.after(plan.latency_ns, lambda _: self._next_phase(meeting))

    def _count(self, device: int, change: int) -> None:
        before = self._under_way.get(device, 0)
        self._under_way[device] = before + change
        if not before or not before + change:
            self._shares(device, change > 0)

    def _next_phase(self, meeting: Meeting) -> None:
        if not meeting.phases:
            self._end(meeting)
            return
        phase = meeting.phases.popleft()
        if not phase.routes:
            self._instants.after(phase.alone_ns, lambda _: self._next_phase(meeting))
            return
        flows = range(self._next_flow, self._next_flow + len(phase.routes))
        self._next_flow = flows.stop
        meeting.flows = len(flows)
        self._flows.update(dict.fromkeys(flows, meeting))
        self._network.flow(flows, phase.routes, phase)
        if phase.equals is not None:
            self._network.flow(self._equals.phase(flows, phase.equals), phase.equals.routes, phase)

    def _end(self, meeting: Meeting) -> None:
        now = self._instants.now()
        for stream, entry in zip(meeting.streams, meeting.entries, strict=True):
            self._log.end_ns[entry] = now
            self._freed_by[stream] = entry
            if self._busy.pop(stream, None) is not None:
                self._count(stream[0], -1)
            if stream in self._waiting:
                self._freed += self._waiting.pop(stream)
        if self._freed or self._waiting:
            self._ask()
        for member, entry in zip(meeting.members, meeting.entries, strict=True):
            self._feeder.ended(member.row, entry)


def _row(member: MemberRow) -> int:
    return member.row


def _turn(meeting: Meeting) -> int:
    return meeting.turn


def _first_row(meeting: Meeting) -> int:
    return min(map(_row, meeting.members))
