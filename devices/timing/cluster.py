"""The simulated machines: a simpy process per compute stream, callbacks for transfers over links.

A stream runs one op at a time and a link carries one transfer at a time, first come first served. A node starts when
all its inputs are there and its stream or links are free.

An instant has two halves. First everything that ends then ends, and releases the nodes that waited for it; then streams
and links take new work. Tie-break: a stream takes the ready node that became ready first, and of those that became
ready at the same instant the one with the lowest joint number (order of partitions, then node id); links take transfers
in the same order. So the result does not depend on the order in which simpy handles simultaneous events.

A transfer occupies all links of its route at once, from when the last of them is free, for bytes / slowest rate. Then
the links take the next transfer, while the bytes arrive after the latency of the route: n messages of s bytes that wait
for one link have arrived after latency + n * s / rate.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from heapq import heappop, heappush

from simpy import Environment, Event, Timeout
from simpy.events import EventPriority

from ...errors import InternalError
from .log import StepLog
from .work import Duty, Work

_LATE = EventPriority(2)  # after simpy's NORMAL: the second half of an instant


def _call(event: Event, callback: Callable[[Event], None]) -> None:
    """Adds a callback to an event."""
    if event.callbacks is not None:  # None after the event
        event.callbacks.append(callback)


class _Late(Event):
    """An event that happens in the second half of the instant in which it is triggered."""

    def trigger_late(self) -> _Late:
        """Schedules the event for the end of the present instant."""
        self._ok = True
        self._value = None
        self.env.schedule(self, _LATE)
        return self


class _Stream:
    """The compute stream of one device: a heap of ready nodes and the process that runs them."""

    __slots__ = ("last", "machines", "ready", "wake")

    def __init__(self, machines: SimulatedCluster) -> None:
        self.machines = machines
        self.ready: list[int] = []  # ready since (ns) * number of nodes + node: one integer orders by both
        self.wake: _Late | None = None
        self.last = -1  # the event that occupied the stream last

    def push(self, key: int) -> None:
        """Adds a ready node; an idle stream looks for work in the second half of the instant."""
        heappush(self.ready, key)
        if self.wake is not None:
            wake, self.wake = self.wake, None
            wake.trigger_late()

    def process(self) -> Generator[Event, None, None]:
        """Runs ready nodes in the order of the tie-break; never returns: simpy drops it when no event is left."""
        machines, ready, log = self.machines, self.ready, self.machines.log
        env, count, released_by = machines.env, len(machines.work.graph), machines.released_by
        durations = [cost.time_ns for cost in machines.work.cost]
        while True:
            if not ready:
                self.wake = _Late(env)
                yield self.wake
            elif env.peek() <= env.now:
                # Another event of this instant may still release a node that goes first.
                yield _Late(env).trigger_late()
            since, node = divmod(heappop(ready), count)
            now, duration = machines.now(), durations[node]
            self.last = log.record(node, now, now + duration, released_by[node] if since == now else self.last)
            yield Timeout(env, duration)
            machines.finish(node, self.last)


class SimulatedCluster:
    """One step on simulated hardware: `run` once, then read `log`."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.env = Environment()
        count = len(work.graph)
        self.log = StepLog(count)
        self.released_by = [-1] * count  # the event that made a node ready
        self._waits = list(work.waits)
        self._open_merges = {n for merges in work.into_merges.values() for n in merges}
        streams = [_Stream(self) for _ in work.devices]
        self._streams = streams
        self._stream_of = [
            streams[device] if duty is Duty.COMPUTE else None
            for device, duty in zip(work.device, work.duty, strict=True)
        ]
        self._requests: list[int] = []  # receives that became ready in this instant
        self._free_at = [(0, -1)] * len(work.links)  # per link: when it becomes free, and the event that occupies it

    def run(self) -> None:
        """Simulates the step; raises InternalError when nodes are left over."""
        for stream in self._streams:
            self.env.process(stream.process())
        self._release([(node, -1) for node, waits in enumerate(self.work.waits) if not waits])
        self.env.run()
        stuck = self.log.left_over()
        if stuck:
            name = self.work.graph.names[stuck[0]]
            raise InternalError(f"{len(stuck)} nodes never became ready in the simulation", node=name)

    def now(self) -> int:
        """Nanoseconds since the start of the step: a whole number, as all durations are."""
        return int(self.env.now)

    def finish(self, node: int, event: int) -> None:
        """Ends a node now; `event` is its number in the log. Releases the nodes that waited only for it."""
        released: list[tuple[int, int]] = []
        self._count_down(node, event, released)
        if released:
            self._release(released)

    def _count_down(self, node: int, event: int, released: list[tuple[int, int]]) -> None:
        """Lowers the count of every node that waits for `node`; appends those that reach 0 to `released`."""
        waits = self._waits
        for target in self.work.after[node]:
            waiting = waits[target] = waits[target] - 1
            if not waiting:
                released.append((target, event))
        for merge in self.work.into_merges.get(node, ()):
            if merge in self._open_merges:
                self._open_merges.remove(merge)
                waits[merge] -= 1
                if not waits[merge]:
                    released.append((merge, event))

    def _release(self, released: list[tuple[int, int]]) -> None:
        """Gives ready nodes to streams and links; free nodes end at once and release others."""
        duties, routes, log = self.work.duty, self.work.routes, self.log
        now, count = self.now(), len(self.work.graph)
        while released:
            node, cause = released.pop()
            stream = self._stream_of[node]
            if stream is not None:
                self.released_by[node] = cause
                stream.push(now * count + node)
            elif duties[node] is Duty.TRANSFER and routes[node].links:
                self.released_by[node] = cause
                self._request(node)
            elif duties[node] is Duty.DEAD:
                log.skip(node, now)
                self._count_down(node, cause, released)
            else:
                self._count_down(node, log.record(node, now, now, cause), released)

    def _request(self, node: int) -> None:
        if not self._requests:
            _call(_Late(self.env).trigger_late(), self._start_transfers)
        self._requests.append(node)

    def _start_transfers(self, _: Event) -> None:
        """Starts the transfers requested at this instant, lowest receive first, each when all its links are free."""
        requests, self._requests = sorted(self._requests), []
        now, free_at = self.now(), self._free_at
        for node in requests:
            links = self.work.links_of[node]
            free, occupant = max([free_at[link] for link in links])
            start_ns = max(now, free)
            sent_ns = start_ns + self.work.occupied_ns[node]
            arrives_ns = sent_ns + self.work.latency_ns[node]
            copy = self.log.record_copy(
                node, start_ns, arrives_ns, self.released_by[node] if start_ns == now else occupant
            )
            for link in links:
                free_at[link] = sent_ns, copy
            _call(Timeout(self.env, arrives_ns - now), partial(self._arrive, node, copy))

    def _arrive(self, node: int, copy: int, _: Event) -> None:
        self.finish(node, self.log.record_arrival(node, copy))
