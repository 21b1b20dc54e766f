"""Plays a step that only computes on processors in one loop: nothing is launched, nothing crosses a link.

All that may happen is that an op ends, that free nodes pass, and that a lane takes the next op. The engine plays such a
step too, and writes the same log; but there each op is half a dozen calls, which take longer than all that is decided.

    instant      what ended       what is ready       lanes take
    0            -                a, b on CPU:0       a, until 10
    10           a                c on CPU:1          b on CPU:0, as it has waited; c on CPU:1

An instant has two halves, as in `instants`: what ends releases what waits for it, then lanes choose among all that is
ready, processor by processor in the order in which they were asked. What became ready at one instant goes by number.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from ..hardware.engine import Duty
from ..hardware.log import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...cluster import Cluster
    from ..bodies.body import Body
    from ..hardware.log import Log
    from .activation import Activation
    from .passing import Ready
    from .shared_hardware import SharedHardware


def only_computes(body: Body, shared: SharedHardware) -> bool:
    """Whether a body runs on processors alone, each of which has its full speed all the time."""
    profiles = shared.cluster.profiles
    if shared.is_unlimited or shared.is_ordered or profiles.slow or profiles.degrade:
        return False
    if body.routes or body.seats or body.launch_consumers is not None:
        return False
    return body.passes is not None and not (body.duty == Duty.HOST).any()


class _Processor:
    """A device: its idle lanes, a heap; by lane the entry that occupied it last; ready nodes.

    `fresh` are nodes that became ready at `fresh_at` with the entries that released them, `waiting` those of before.
    `is_asked` says that its lanes will choose at the present instant.
    """

    __slots__ = ("fresh", "fresh_at", "idle", "is_asked", "last", "waiting")

    def __init__(self, lanes: int) -> None:
        self.idle = list(range(lanes))
        self.last = [-1] * lanes
        self.waiting: deque[int] = deque()
        self.fresh: Ready = []
        self.fresh_at = -1
        self.is_asked = False


_NodeEnd = tuple[int, int, int]
"""a node that ends, its entry, and its lane; of a node that only waits -1"""


class ProcessorPlay:
    """One step on the processors of a cluster.

    The log is written when all is over: until then there are only the node and the cause of each entry, and the number
    of entries at the end of each instant.
    """

    def __init__(self, activation: Activation, cluster: Cluster, log: Log) -> None:
        """The activation has just begun."""
        self._activation = activation
        self._log = log
        body = activation.body
        self._time_ns = body.time_ns
        processors = [_Processor(device.spec.lanes) for device in cluster.devices]
        computes = np.where(body.duty == Duty.COMPUTE, body.device, -1).tolist()
        self._place_of = [processors[device] if device >= 0 else None for device in computes]
        self._waits = (body.duty == Duty.WAIT).tobytes()
        self._ends: dict[int, list[_NodeEnd]] = {}
        self._times: list[int] = []  # of `_ends`, a heap
        self._asked: list[_Processor] = []
        self._nodes: list[int] = []
        self._causes: list[int] = []

    def play(self, ready: Ready) -> int:
        """Plays until nothing is left, beginning with nodes that are ready at 0; returns the last instant."""
        now, ends, times, instants = 0, self._ends, self._times, list[tuple[int, int]]()
        self._release(ready, 0)
        while True:
            if self._asked and now not in ends:
                asked, self._asked = self._asked, []
                for processor in asked:
                    self._choose(processor, now)
                continue
            instants.append((now, len(self._nodes)))
            if not times:
                break
            now = heappop(times)
            self._end(ends.pop(now), now)
        self._activation.left = sum(waits > 0 for waits in self._activation.waits)
        self._write(instants)
        return now

    def _write(self, instants: Sequence[tuple[int, int]]) -> None:
        """Writes the log: an entry starts at its instant, and ends as much later as its node takes."""
        nodes, log, passes = np.array(self._nodes, np.int64), self._log, self._activation.body.passes
        assert passes is not None  # as the activation is all of a step
        now, length = np.array(instants, np.int64).T
        start_ns = np.repeat(now, np.diff(length, prepend=0))
        taken_ns = np.where(np.frombuffer(passes, np.bool_), 0, np.array(self._time_ns, np.int64))[nodes]
        log.entries.frombytes((nodes * KINDS).tobytes())
        log.causes.frombytes(np.array(self._causes, np.int64).tobytes())
        log.start_ns.frombytes(start_ns.tobytes())
        log.end_ns.frombytes((start_ns + taken_ns).tobytes())

    def _end(self, ending: Sequence[_NodeEnd], now: int) -> None:
        """Ends nodes one by one, and releases what waited for them."""
        place_of, asked, waits = self._place_of, self._asked, self._activation.waits
        starts, targets = self._activation.body.consumers
        for node, entry, lane in ending:
            ready = []
            for target in targets[starts[node] : starts[node + 1]]:
                waiting = waits[target] = waits[target] - 1
                if not waiting:
                    ready.append((target, entry))
            own = place_of[node]
            if own is None:
                self._release(ready, now)
                continue
            heappush(own.idle, lane)
            own.is_asked = True  # it asks after all that this end releases
            if ready:
                self._release(ready, now)
            own.is_asked = False
            if own.fresh or own.waiting:
                own.is_asked = True
                asked.append(own)

    def _release(self, ready: Ready, now: int) -> None:
        """Hands ready nodes to their processors; free ones pass, and release others."""
        place_of, waits, nodes, causes = self._place_of, self._activation.waits, self._nodes, self._causes
        starts, targets = self._activation.body.consumers
        only_waits = self._waits
        while ready:
            node, cause = ready.pop()
            processor = place_of[node]
            if processor is not None:
                self._ask(processor, node, cause, now)
            elif only_waits[node]:
                self._begin(node, cause, now, -1)
            else:
                entry = len(nodes)
                nodes.append(node)
                causes.append(cause)
                for target in targets[starts[node] : starts[node + 1]]:
                    waiting = waits[target] = waits[target] - 1
                    if not waiting:
                        ready.append((target, entry))

    def _ask(self, processor: _Processor, node: int, cause: int, now: int) -> None:
        """A node is ready to run on a processor."""
        if processor.fresh_at != now:
            _settle(processor)
            processor.fresh_at = now
        processor.fresh.append((node, cause))
        if processor.idle and not processor.is_asked:
            processor.is_asked = True
            self._asked.append(processor)

    def _choose(self, processor: _Processor, now: int) -> None:
        """The idle lanes of a processor, the lowest first, take nodes: those that have waited, then those of now."""
        processor.is_asked = False
        if processor.fresh_at != now:
            _settle(processor)
        waiting, fresh, idle, last = processor.waiting, processor.fresh, processor.idle, processor.last
        fresh.sort(reverse=True)
        while idle and (waiting or fresh):
            lane = heappop(idle)
            node, cause = (waiting.popleft(), last[lane]) if waiting else fresh.pop()
            last[lane] = self._begin(node, cause, now, lane)

    def _begin(self, node: int, cause: int, now: int, lane: int) -> int:
        """Begins to run a node; returns its entry."""
        entry, end = len(self._nodes), now + self._time_ns[node]
        self._nodes.append(node)
        self._causes.append(cause)
        if lane > 0:
            self._log.lanes[entry] = lane
        ending = self._ends.get(end)
        if ending is None:
            self._ends[end] = [(node, entry, lane)]
            heappush(self._times, end)
        else:
            ending.append((node, entry, lane))
        return entry


def _settle(processor: _Processor) -> None:
    """What became ready at an earlier instant has waited."""
    if processor.fresh:
        processor.fresh.sort()
        processor.waiting.extend([node for node, _ in processor.fresh])
        processor.fresh.clear()
