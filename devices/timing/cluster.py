"""The simulated machines: one simpy process a compute stream, callbacks for transfers over links.

Flows in: `Work`. Flows out: events with start and end in nanoseconds, in the order they were settled. Always holds: a
stream runs one op at a time and a link carries one transfer at a time, first come first served; a node starts no
earlier than all it waits for has ended; nothing waits while what it needs is free.

An instant has two halves. First all that ends at it ends, and releases what waited; then streams and links pick new
work. Tie-break: of the ready nodes a stream takes the one that was ready first, of those that were ready at the same
instant the one with the lowest joint number (order of partitions, then node id); links serve transfers in the same
order. So the outcome depends on the work alone, not on the order in which simpy happens to handle simultaneous events.

A transfer occupies all links of its route at once, from when the last of them is free, for latency + bytes / slowest
rate.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from heapq import heappop, heappush

from simpy import Environment, Event, Timeout
from simpy.events import EventPriority

from ...errors import InternalError
from ..topology import Link
from .timeline import COMPUTE_STREAM, Kind, TimelineEvent
from .work import Duty, Work

_LATE = EventPriority(2)  # after simpy's NORMAL: the second half of an instant
_NOT_RUN = -1


def _call(event: Event, callback: Callable[[Event], None]) -> None:
    """Has `callback` called when the event happens."""
    if event.callbacks is not None:  # None only for an event that is over
        event.callbacks.append(callback)


class _Late(Event):
    """Once triggered, happens in the second half of that instant."""

    def trigger_late(self) -> _Late:
        """Schedules the event for the end of the present instant."""
        self._ok = True
        self._value = None
        self.env.schedule(self, _LATE)
        return self


class _Stream:
    """The compute stream of one device: a heap of ready nodes and the process that works it off."""

    __slots__ = ("last", "machines", "name", "ready", "wake")

    def __init__(self, machines: SimulatedCluster, name: str) -> None:
        self.machines = machines
        self.name = name
        self.ready: list[tuple[int, int, int]] = []  # (ready since, node, event that released it)
        self.wake: _Late | None = None
        self.last = -1  # the event that occupied the stream last

    def push(self, node: int, cause: int) -> None:
        """Makes a node ready now; a stream that idles looks for work at the end of the instant."""
        heappush(self.ready, (self.machines.now(), node, cause))
        if self.wake is not None:
            wake, self.wake = self.wake, None
            wake.trigger_late()

    def process(self) -> Generator[Event, None, None]:
        """Takes nodes in the stated order, for ever; simpy drops the process when no event is left."""
        machines, env = self.machines, self.machines.env
        while True:
            if not self.ready:
                self.wake = _Late(env)
                yield self.wake
            elif env.peek() <= env.now:
                yield _Late(
                    env
                ).trigger_late()  # something else still ends at this instant, and may release an earlier node
            since, node, cause = heappop(self.ready)
            index = machines.record_compute(node, self.name, cause if since == env.now else self.last)
            self.last = index
            yield Timeout(env, machines.work.cost[node].time_ns)
            machines.finish(node, index)


class SimulatedCluster:
    """One step on simulated hardware: `run` once, then read `events`, `start_ns` and `end_ns` (by node)."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.env = Environment()
        self.events: list[TimelineEvent] = []
        count = len(work.graph)
        self.start_ns = [_NOT_RUN] * count
        self.end_ns = [_NOT_RUN] * count
        self._waits = list(work.waits)
        self._open_merges = {n for merges in work.into_merges.values() for n in merges}
        self._streams = [_Stream(self, name) for name in work.devices]
        self._requests: list[tuple[int, int]] = []  # (receive, event that made it ready) of this instant
        self._free_at: dict[Link, tuple[int, int]] = {}  # link -> (from when it is free, event that occupies it)

    def run(self) -> None:
        """Simulates the step; raises InternalError when nodes are left over."""
        for stream in self._streams:
            self.env.process(stream.process())
        for node, waits in enumerate(self.work.waits):
            if not waits:
                self._release([(node, -1)])
        self.env.run()
        left = [self.work.graph.names[n] for n, end in enumerate(self.end_ns) if end == _NOT_RUN]
        if left:
            raise InternalError(f"{len(left)} nodes never became ready in the simulation", node=left[0])

    def finish(self, node: int, event: int) -> None:
        """The node has ended now, as that event: releases what waited for nothing else."""
        self._release(self._released_by(node, event))

    def _released_by(self, node: int, event: int) -> list[tuple[int, int]]:
        waits, released = self._waits, []
        for target in self.work.after[node]:
            waits[target] -= 1
            if not waits[target]:
                released.append((target, event))
        for merge in self.work.into_merges.get(node, ()):
            if merge in self._open_merges:
                self._open_merges.remove(merge)
                waits[merge] -= 1
                if not waits[merge]:
                    released.append((merge, event))
        return released

    def _release(self, released: list[tuple[int, int]]) -> None:
        """Hands ready nodes to streams and links; free ones pass at once, and so on from there."""
        work = self.work
        while released:
            node, cause = released.pop()
            duty = work.duty[node]
            if duty is Duty.COMPUTE:
                self._streams[work.device[node]].push(node, cause)
            elif duty is Duty.TRANSFER and work.routes[node].links:
                self._request(node, cause)
            else:
                index = cause if duty is Duty.DEAD else self._record_instant(node, cause)
                self.start_ns[node] = self.end_ns[node] = self.now()
                released += self._released_by(node, index)

    def now(self) -> int:
        """Nanoseconds since the start of the step: a whole number, as all durations are."""
        return int(self.env.now)

    def record_compute(self, node: int, device: str, cause: int) -> int:
        """The node starts now: its event, which ends when its cost says; the event's index."""
        work, cost, now = self.work, self.work.cost[node], self.now()
        self.start_ns[node], self.end_ns[node] = now, now + cost.time_ns
        name, op = work.graph.names[node], work.graph.ops[node]
        end = now + cost.time_ns
        self.events.append(
            TimelineEvent(
                device, COMPUTE_STREAM, name, op, "compute", now, end, cost.bytes, cost.flops, cost.provenance, cause
            )
        )
        return len(self.events) - 1

    def _record_instant(self, node: int, cause: int) -> int:
        graph, now = self.work.graph, self.now()
        device = self.work.devices[self.work.device[node]]
        transfer = graph.transfers.get(node)
        kind: Kind = "compute" if transfer is None else ("recv" if graph.properties[node].output_types else "send")
        op, name = graph.ops[node], graph.names[node]
        self.events.append(TimelineEvent(device, COMPUTE_STREAM, name, op, kind, now, now, 0, 0, "free", cause))
        return len(self.events) - 1

    def _request(self, node: int, cause: int) -> None:
        if not self._requests:
            _call(_Late(self.env).trigger_late(), self._start_transfers)
        self._requests.append((node, cause))

    def _start_transfers(self, _: Event) -> None:
        """All requests of this instant, lowest receive first, each onto its links as soon as all of them are free."""
        requests, self._requests = sorted(self._requests), []
        for node, cause in requests:
            route, now = self.work.routes[node], self.now()
            free_at, occupant = max(self._free_at.get(link, (0, -1)) for link in route.links)
            start, index = max(now, free_at), len(self.events)
            end = start + route.transfer_ns(self.work.sizes[node])
            for link in route.links:
                self._free_at[link] = end, index
            self._record_copy(node, start, end, cause if start == now else occupant)
            self.start_ns[node], self.end_ns[node] = start, end
            _call(Timeout(self.env, end - now), partial(self._arrive, node, index))

    def _record_copy(self, node: int, start: int, end: int, cause: int) -> None:
        graph, first = self.work.graph, self.work.routes[node].links[0]
        transfer = graph.transfers[node]
        device = self.work.devices[self.work.device[graph.sender[node]]]
        size = self.work.sizes[node]
        self.events.append(
            TimelineEvent(
                device, first.stream_name, transfer.tensor_name, "copy", "copy", start, end, size, 0, "link", cause
            )
        )

    def _arrive(self, node: int, copy: int, _: Event) -> None:
        self.finish(node, self._record_instant(node, copy))
