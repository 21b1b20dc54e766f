"""The simulated hardware of a cluster as one object: rows are started, and the feeder is told when they end.

A feeder (the player of a simulation, or the actors of a session on a virtual clock) says that a row is ready:

    start(row, duty, device, cause)    compute, on the lanes or the stream of a device; on its host; or only waiting
    copy(row, route, size, cause)      the transfer of a receive
    collectives.join(...)              the member of a collective
    passes(row, cause)                 free: the row ends at once; returns its entry in the log
    begin(row, cause), finish(row)     a row whose end only the feeder knows

and moves the clock with `next_event`, in which the engine tells it which rows were launched and which ended. Between
two calls of `next_event` the clock stands still.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sized
from contextlib import suppress
from enum import IntEnum
from functools import partial
from math import inf

from simpy import Environment, Event
from simpy.core import EmptySchedule

from ...cluster import Cluster
from ...device import Device
from ...topology import Route
from .ahead_gpu import AheadGpu
from .collectives import FIRST_FLOW, Collectives, PlanOf
from .equals import FIRST_EQUAL, EqualFlows, SharedRoute
from .instants import Instants
from .log import COPY, KINDS, Log
from .network import Network
from .prioritised import PrioritisedLanes, PriorityOf, RowsByPriority
from .profile import EndOf, Profile, at_full_speed
from .streams import ComputePlace, Delays, Feeder, Gpu, Lanes, RowName
from .yielding_gpu import YieldingGpu


class Duty(IntEnum):
    """What the hardware does for a node."""

    FREE = 0  # passes at once
    COMPUTE = 1  # a lane of a CPU, or a launch and the stream of a GPU
    HOST = 2  # computes on the host of a GPU, which launches nothing for it
    WAIT = 3  # only waits, on no lane
    TRANSFER = 4  # a receive: bytes cross its route
    COLLECTIVE = 5  # a member of a collective, on a communication stream


class Engine:
    """Streams, launch threads and links of the devices of a step, on one clock that begins at 0.

    `log` has what happened. With `is_unlimited` every row runs at once, and every transfer has its route to itself: the
    time of a step is then its longest chain of durations.
    """

    def __init__(
        self,
        cluster: Cluster,
        feeder: Feeder,
        plan_of: PlanOf,
        *,
        is_unlimited: bool = False,
        priority_of: PriorityOf | None = None,
    ) -> None:
        """Devices are numbered in their order; `plan_of` plans collectives among them.

        With `priority_of` ready rows and complete collectives are taken by priority, without it as they come.
        """
        profile = Profile(cluster.profiles)
        self.env = Environment()
        self.log = Log()
        self._instants = Instants(self.env)
        self._feeder = feeder
        self.network = Network(self.env, self, profile)
        self._equals = EqualFlows(self._instants)
        parts = self._instants, self.log, feeder, self.network, self._equals
        self.collectives = Collectives(
            *parts, plan_of, self._shares, is_unlimited=is_unlimited, priority_of=priority_of
        )
        self._priority_of = priority_of
        self._is_unlimited = is_unlimited
        self._waits = Delays(self._instants, self.log, feeder)
        self.streams: list[Gpu | None] = []
        """by device: the stream of a GPU"""
        self._places = [self._places_of(device, profile.end_of(device.name)) for device in cluster.devices]
        self._places_of_iterations = [self._of_iterations(places) for places in self._places]
        self._released_by: dict[int, int] = {}  # receives whose transfer has not started: the entry that released them
        self._latency_ns: dict[int, int] = {}  # of receives that were asked for
        self._copies: dict[int, int] = {}  # receives whose transfer has started: its entry
        self._begun: dict[int, int] = {}  # rows whose end the feeder knows: the entry

    def _places_of(self, device: Device, end_of: EndOf) -> dict[Duty, ComputePlace]:
        """Where the rows of a device run, by duty."""
        spec, parts = device.spec, (self._instants, self.log, self._feeder)
        is_gpu = spec.launches_kernels
        stream: Gpu | None = None
        if is_gpu and not self._is_unlimited and spec.communication_share:
            stream = YieldingGpu(*parts, spec.launch_overhead_ns, end_of, spec.communication_share, self._queue())
        elif is_gpu and not self._is_unlimited:
            stream = (AheadGpu if spec.launches_ahead else Gpu)(*parts, spec.launch_overhead_ns, end_of, self._queue())
        self.streams.append(stream)
        compute: ComputePlace = stream or self._lanes(spec.lanes, end_of)
        host: ComputePlace = self._lanes(1, at_full_speed)
        if self._is_unlimited:
            compute, host = Delays(*parts, launches=is_gpu), self._waits
        return {Duty.COMPUTE: compute, Duty.HOST: host, Duty.WAIT: self._waits}

    def _lanes(self, lanes: int, end_of: EndOf) -> Lanes:
        parts, queue = (self._instants, self.log, self._feeder), self._queue()
        return Lanes(*parts, lanes, end_of) if queue is None else PrioritisedLanes(*parts, lanes, end_of, queue)

    def _queue(self) -> RowsByPriority | None:
        """Where rows wait; None if they are taken as they come."""
        return None if self._priority_of is None else RowsByPriority(self._priority_of, self._feeder.turn)

    def _of_iterations(self, places: dict[Duty, ComputePlace]) -> dict[Duty, ComputePlace]:
        """Where the rows of overlapping iterations run."""
        compute = places[Duty.COMPUTE]
        return {**places, Duty.COMPUTE: compute.of_iterations} if isinstance(compute, Lanes) else places

    def _shares(self, device: int, shares: bool) -> None:
        """A collective begins on a device, or the last one ends."""
        stream = self.streams[device]
        if isinstance(stream, YieldingGpu):
            stream.share_with_collectives(shares=shares)

    def now(self) -> int:
        """Nanoseconds since the start of the clock."""
        return self._instants.now()

    def place(self, duty: Duty, device: int, *, overlaps: bool = False) -> ComputePlace:
        """Where rows of a duty run on a device; `overlaps` is for those of loops whose iterations do."""
        return (self._places_of_iterations if overlaps else self._places)[device][duty]

    def start(self, row: int, duty: Duty, device: int, cause: int, *, overlaps: bool = False) -> None:
        """A row is ready to run on a device; the entry `cause` released it, -1 for none."""
        self.place(duty, device, overlaps=overlaps).take(row, cause)

    def passes(self, row: int, cause: int) -> int:
        """A free row passes now; returns its entry."""
        now = self._instants.now()
        return self.log.record(row * KINDS, now, now, cause)

    def begin(self, row: int, cause: int) -> None:
        """A row begins whose end the feeder will tell with `finish`; it holds no lane."""
        now = self._instants.now()
        self._begun[row] = self.log.record(row * KINDS, now, now, cause)

    def finish(self, row: int) -> int:
        """A row that `begin` began ends now; returns its entry. The feeder is not called."""
        entry = self._begun.pop(row)
        self.log.end_ns[entry] = self._instants.now()
        return entry

    def copy(self, row: int, route: Route, size_bytes: int, cause: int) -> None:
        """The tensor of a receive is asked for: its bytes cross the links of a route, which is not empty."""
        self._released_by[row], self._latency_ns[row] = cause, route.latency_ns
        if self._is_unlimited:
            self.started(row, self._instants.now(), -1)
            self._instants.after(route.transfer_ns(size_bytes), partial(self._arrived_alone, row))
        else:
            self.network.request(row, route, size_bytes)
            if isinstance(route, SharedRoute) and route.others:
                for number, other in zip(self._equals.transfer(row, route), route.others, strict=True):
                    self.network.request(number, other, size_bytes)

    def _arrived_alone(self, row: int, _: Event) -> None:
        self.arrived(row)

    def started(self, transfer: int, start_ns: int, cause_transfer: int) -> None:
        """The network has started a transfer: at its request, or when `cause_transfer` gave a copy engine free."""
        if transfer >= FIRST_EQUAL:
            return
        cause = self._released_by.pop(transfer)
        if cause_transfer >= 0:
            cause = self._copies[cause_transfer]
        self._copies[transfer] = self.log.record(transfer * KINDS + COPY, start_ns, start_ns, cause)

    def arrived(self, transfer: int) -> None:
        """The last byte of a transfer has arrived: the copy ended when it was sent, the latency is the receive's."""
        if self._equals.were_used:
            self._equals.arrived(transfer)
        if transfer >= FIRST_FLOW:
            self.network.bottlenecks.pop(transfer, None)
            if transfer < FIRST_EQUAL:
                self.collectives.arrived(transfer)
            return
        now, copy = self._instants.now(), self._copies[transfer]
        sent = self.log.end_ns[copy] = now - self._latency_ns.pop(transfer)
        bottleneck = self.network.bottlenecks.pop(transfer, None)
        if bottleneck is not None:
            self.log.bottlenecks[copy] = bottleneck.name
        self._feeder.ended(transfer, self.log.record(transfer * KINDS, sent, now, copy))

    def after(self, delay_ns: int, action: Callable[[], None]) -> None:
        """Calls `action` so many nanoseconds from now."""
        self._instants.after(delay_ns, lambda _: action())

    def oldest_copy_ns(self) -> int | None:
        """When the first of the copies under way started; None if there is none."""
        return min(
            [self.log.start_ns[self._copies[row]] for row in self._latency_ns if row in self._copies], default=None
        )

    def unfinished(self) -> list[int]:
        """Entries whose end the log does not have yet: copies, collectives, and rows that the feeder has begun."""
        copies = [self._copies[row] for row in self._latency_ns if row in self._copies]
        return [*self._begun.values(), *self.collectives.unfinished(), *copies]

    @property
    def has_events(self) -> bool:
        """Whether anything is left to happen."""
        return self.env.peek() < inf

    def state(self, name: RowName) -> Hashable | None:
        """Everything that decides how the hardware goes on, relative to the present.

        Two equal states, rows told by `name`, go on alike. None in the middle of an instant, while rates of transfers
        have to be found, and of steps with collectives or with equal flows of other ranks.
        """
        transfers = self.network.state(name)
        if transfers is None or self.collectives.were_used or self._equals.were_used:
            return None

        def named(action: object) -> Hashable:
            if isinstance(action, partial):
                owner, (first, *rest) = getattr(action.func, "__self__", None), action.args
                if isinstance(owner, Gpu) and owner.completes(action):
                    return id(owner), "completes", owner.age(first)
                # The last argument of an op is its lane, the one before the entry in the log, which tells nothing.
                return id(owner), action.func.__name__, name(first), *rest[1:]
            return id(getattr(action, "__self__", action)), getattr(action, "__name__", "")

        places = [place for by_duty in self._places for place in by_duty.values() if isinstance(place, Lanes | Gpu)]
        return transfers, self._instants.state(named), tuple(place.state(name) for place in places)

    def next_event(self) -> bool:
        """Moves the clock to the next thing that happens; False when nothing is left to happen."""
        if not self.has_events:
            return False
        self.env.step()
        return True

    def run(self) -> None:
        """Moves the clock until nothing is left to happen."""
        self.env.run()

    def run_folding(self, begun: Sized, check: Callable[[], None]) -> None:
        """The same, and calls `check` after each event while something has `begun`."""
        step = self.env.step
        with suppress(EmptySchedule):
            while True:
                step()
                if begun:
                    check()
