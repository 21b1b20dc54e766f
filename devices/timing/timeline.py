"""The record of a step, and the questions that people ask of it: makespan, busy streams, critical path, totals, memory.

A timeline comes from a simulation. Events that occupy a stream of a device do not overlap there. The bytes of a
transfer are counted in one event, of kind "copy". A timeline without events, or of 0 ns, is an error.

Kinds: "compute" an op on its device; "copy" a transfer, on the stream of the first link it occupies; "send" the instant
at which a tensor is sent; "recv" from when its last byte was sent to when that byte arrives, which is the latency of
its links. The last two occupy nothing and have no bytes of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from ...errors import InvalidArgumentError
from ..units import format_bytes, format_ns
from .memory.kinds import Place
from .memory.use import MemoryPeak, MemoryUse

Kind = Literal["compute", "send", "recv", "copy"]
COMPUTE_STREAM = "compute"
BASIS = "assumed, not calibrated"
"""printed beside simulated times: they follow from models of devices and links, not from measurements"""


class TimelineEvent(NamedTuple):
    """One event, from `start_ns` to `end_ns` after the start of the step.

    `node` is the node's name, or the tensor's name for a copy. `bytes` are moved in memory by an op, over links by a
    copy. `provenance` is the source of the duration. `cause` is the index of the event whose end let this one start:
    its last input, or the event that occupied its stream before; -1 for an event that waited for none.
    """

    device: str
    stream: str
    node: str
    op: str
    kind: Kind
    start_ns: int
    end_ns: int
    bytes: int = 0
    flops: int = 0
    provenance: str = "roofline"
    cause: int = -1

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from start to end."""
        return self.end_ns - self.start_ns

    @property
    def occupies(self) -> bool:
        """Whether it occupies its stream."""
        return self.kind in ("compute", "copy")


class OpTotal(NamedTuple):
    """All events of one op together."""

    op: str
    runs: int
    time_ns: int
    flops: int
    bytes: int


class Timeline:
    """Events of one step, with the assumptions behind them.

    `dependency_bound_ns` is the longest chain of durations along edges: no schedule can be faster.
    `peak_bytes` maps (device, "device" or "host") to the most memory in use; it follows from `memory` if that is given.
    `warnings` are the assumptions, as sentences. `models` maps devices to their models.
    """

    def __init__(
        self,
        events: Iterable[TimelineEvent],
        *,
        warnings: Sequence[str] = (),
        peak_bytes: Mapping[tuple[str, Place], int] | None = None,
        memory: MemoryUse | None = None,
        dependency_bound_ns: int = 0,
        models: Mapping[str, str] | None = None,
    ) -> None:
        """Raises InvalidArgumentError when there is no event, or when no event takes time."""
        self.events = tuple(events)
        self.warnings = tuple(warnings)
        self._memory = memory
        self.peak_bytes = dict(memory.peak_bytes if memory else peak_bytes or {})
        self.dependency_bound_ns = dependency_bound_ns
        self.models = dict(models or {})
        if not self.events:
            raise InvalidArgumentError("the timeline is empty: 0 nodes executed; check feeds, fetches and placement")
        self.makespan_ns = max(event.end_ns for event in self.events)
        if not self.makespan_ns:
            raise InvalidArgumentError(
                f"the timeline takes 0 ns: all {len(self.events)} events are free; fetch something that is computed"
            )

    @cached_property
    def devices(self) -> list[str]:
        """Names of the devices that have events, in order of first appearance."""
        return list(dict.fromkeys(event.device for event in self.events))

    @cached_property
    def _busy(self) -> dict[tuple[str, str], int]:
        busy: dict[tuple[str, str], int] = defaultdict(int)
        for event in self.events:
            busy[event.device, event.stream] += event.duration_ns if event.occupies else 0
        return dict(busy)

    def streams(self, device: str) -> list[str]:
        """Streams of a device that have events, in order of first appearance."""
        return [stream for name, stream in self._busy if name == device]

    def busy_ns(self, device: str, stream: str = COMPUTE_STREAM) -> int:
        """Nanoseconds in which the stream was occupied."""
        return self._busy.get((device, stream), 0)

    def busy_fraction(self, device: str, stream: str = COMPUTE_STREAM) -> float:
        """Share of the makespan in which the stream was occupied, 0 to 1."""
        return self.busy_ns(device, stream) / self.makespan_ns

    def peak_memory_bytes(self, device: str, place: Place = "device") -> int:
        """The most bytes in use at once in the memory of the device, or in the host memory beside a GPU."""
        return self.peak_bytes.get((device, place), 0)

    def memory(self, device: str, place: Place = "device") -> MemoryPeak:
        """The peak of one memory: the memory of the device, or what it has in the host's beside its own.

        InvalidArgumentError if the cluster has no such memory, or if the timeline was made without buffers.
        """
        if self._memory is None:
            raise InvalidArgumentError("the timeline knows no buffers; it does not come from a simulation")
        return self._memory.peak(device, place)

    @property
    def transferred_bytes(self) -> int:
        """Bytes of all transfers; a byte that crosses several links counts once."""
        return sum(event.bytes for event in self.events if event.kind == "copy")

    @property
    def flops(self) -> int:
        """Operations of all ops."""
        return sum(event.flops for event in self.events)

    def find(self, node: str) -> TimelineEvent:
        """The first event of a node; InvalidArgumentError when it has none."""
        for event in self.events:
            if event.node == node:
                return event
        raise InvalidArgumentError(f"no event of a node {node!r}; the timeline has {len(self.events)} events")

    def critical_path(self) -> list[TimelineEvent]:
        """The chain of causes of the event that ends last (the first recorded of several), in time order.

        Each event of the chain starts when the one before it ends, so their durations add up to the makespan.
        """
        last = max(range(len(self.events)), key=lambda i: (self.events[i].end_ns, -i))
        path = []
        while last >= 0:
            path.append(self.events[last])
            last = self.events[last].cause
        return path[::-1]

    def totals_by_op(self) -> list[OpTotal]:
        """Totals per op over compute and copy events, longest first, ties by name."""
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for event in self.events:
            if event.occupies:
                total = sums[event.op]
                for i, value in enumerate((1, event.duration_ns, event.flops, event.bytes)):
                    total[i] += value
        return sorted((OpTotal(op, *total) for op, total in sums.items()), key=lambda t: (-t.time_ns, t.op))

    def render(self, width: int = 60) -> str:
        """A bar per stream, `width` characters for the makespan: full blocks are busy throughout, light ones partly."""
        lines = [f"makespan {format_ns(self.makespan_ns)}, {len(self.events)} events"]
        for device in self.devices:
            peak = self.peak_memory_bytes(device)
            model = f"{self.models[device]}, " if device in self.models else ""
            lines.append(f"{device}  {model}peak memory {format_bytes(peak)}")
            for stream in self.streams(device):
                if self.busy_ns(device, stream):
                    share = f"{100 * self.busy_fraction(device, stream):5.1f} %"
                    lines.append(f"  |{self._bar(device, stream, width)}| {share}  {stream}")
        return "\n".join([*lines, *(f"note: {text}" for text in self.warnings)])

    def _bar(self, device: str, stream: str, width: int) -> str:
        """Busy share of each of `width` equal parts of the makespan, as one character."""
        span, filled = self.makespan_ns, [0] * width
        for event in self.events:
            if event.device == device and event.stream == stream and event.occupies and event.duration_ns:
                # Scaled by width, so that the bounds of the parts are whole numbers.
                start, end = event.start_ns * width, event.end_ns * width
                for part in range(start // span, -(-end // span)):
                    filled[part] += min(end, (part + 1) * span) - max(start, part * span)
        return "".join(" ░▒▓█"[-(-4 * value // span)] for value in filled)


def start_times(timeline: Timeline) -> dict[str, int]:
    """Node name -> first start in microseconds (cut to a whole number), as `PartitionOptions.start_times` has them.

    A recv starts when it has its tensor.
    """
    starts: dict[str, int] = {}
    for event in timeline.events:
        if event.kind != "copy":
            start = (event.end_ns if event.kind == "recv" else event.start_ns) // 1000
            starts[event.node] = min(start, starts.get(event.node, start))
    return starts
