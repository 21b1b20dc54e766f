"""The record of a step, and the questions that people ask of it: makespan, busy streams, critical path, totals, memory.

A timeline comes from a simulation. The bytes of a transfer are counted in one event, of kind "copy". A timeline
without events, or of 0 ns, is an error.

Kinds: "compute" an op on its device; "launch" a host thread launches the kernel of an op; "wait" an op that only waits;
"copy" a transfer, from its start until its last byte is sent, on a stream named after the first link of its route;
"send" the instant at which a tensor is sent; "recv" from when its last byte was sent to when that byte arrives, which
is the latency of its route; "collective" a member's part in a collective, from when all members are ready to its end,
on the device's communication stream of that group. Computing events of one stream do not overlap, nor do collectives;
copies that share a link do. Only computing, copying and collectives are counted in totals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import InvalidArgumentError, Reason
from ...graph.arrays import Numbers, distinct
from ..topology import Link
from ..units import format_bytes, format_ns
from .covered import Covered
from .events import COMPUTE_STREAM, OCCUPYING, Events, TimelineEvent
from .interval import interval_of, runs_by_source
from .memory.kinds import MemoryPlace
from .memory.use import MemoryPeak, MemoryUse
from .representatives.ranks import StandsFor

BASIS = "assumed, not calibrated"
"""printed beside simulated times that follow from models of devices and links, not from measurements"""
FROM_MEASUREMENTS = "op times from measurements"
PARTLY_FROM_MEASUREMENTS = "op times partly from measurements"
_MEASURED = {"measured", "fitted", "transferred"}


if TYPE_CHECKING:
    from .tracing.coverage import Coverage

LinkLoad = tuple[int, int, float]


class OpTotal(NamedTuple):
    """All events of one op together."""

    op: str
    runs: int
    time_ns: int
    flops: int
    bytes: int


class Assumption(NamedTuple):
    """What was assumed of a node, of a device or a machine by its full name, or of the "network", and its value.

    Assumption("x", "shape of output 0", (1, 3)); Assumption("/job:.../device:GPU:0", "launch_overhead", "5 us")
    """

    node: str
    what: str
    value: object


class Timeline:
    """Events of one step, with the assumptions behind them.

    `peak_bytes` maps (device, "device" or "host") to the most memory in use; it follows from `memory` if that is given.
    `warnings` are the assumptions, as sentences; `assumed` has those about sizes and hardware one by one. `models` maps
    devices to their models. `columns` has the events in columns. `trace_coverage` says how many nodes of the step its
    trace knew; None of a step without one.
    """

    def __init__(
        self,
        events: Iterable[TimelineEvent] | Events,
        *,
        warnings: Sequence[str] = (),
        assumed: Sequence[Assumption] = (),
        peak_bytes: Mapping[tuple[str, MemoryPlace], int] | None = None,
        memory: MemoryUse | None = None,
        dependency_bound_ns: int | Callable[[], int] = 0,
        models: Mapping[str, str] | None = None,
        link_loads: Callable[[str], list[LinkLoad]] | None = None,
        trace_coverage: Coverage | None = None,
        representatives: StandsFor | None = None,
    ) -> None:
        """Raises InvalidArgumentError when there is no event, or when no event takes time.

        A function in place of `dependency_bound_ns` is called when it is first asked for.
        """
        self.columns = events if isinstance(events, Events) else Events.of(events)
        self.warnings = tuple(warnings)
        self.assumed = tuple(assumed)
        self._memory = memory
        self.peak_bytes = dict(memory.peak_bytes if memory else peak_bytes or {})
        self.models = dict(models or {})
        self._dependency_bound_ns = dependency_bound_ns
        self._link_loads = link_loads
        self.trace_coverage = trace_coverage
        self._stands_for = representatives or StandsFor()
        if not len(self.columns):
            raise InvalidArgumentError(
                "the timeline is empty: 0 nodes executed; check feeds, fetches and placement"
            ).because(Reason.NO_TIME)
        self.makespan_ns = int(self.columns.end_ns.max())
        if not self.makespan_ns:
            raise InvalidArgumentError(
                f"the timeline takes 0 ns: all {len(self.columns)} events are free; fetch something that is computed"
            ).because(Reason.NO_TIME)

    @cached_property
    def events(self) -> tuple[TimelineEvent, ...]:
        """All events, in the order in which they were recorded."""
        return tuple(self.columns)

    @property
    def representatives(self) -> StandsFor:
        """The devices that each device of the timeline stands for, by names; empty if each stands for itself alone.

        Events are those of the representatives; totals are of all devices.
        """
        return self._stands_for

    @cached_property
    def dependency_bound_ns(self) -> int:
        """The longest chain of durations along edges, in ns: no schedule can be faster."""
        bound = self._dependency_bound_ns
        return bound if isinstance(bound, int) else bound()

    @cached_property
    def devices(self) -> list[str]:
        """Names of the devices that have events, in order of first appearance."""
        return self.columns.device.first_seen()

    @cached_property
    def _busy(self) -> dict[tuple[str, str], int]:
        """Occupied nanoseconds by device and stream, for streams that have events."""
        columns = self.columns
        pairs = np.stack([columns.device.numbers, columns.stream.numbers])
        keys, first, stream = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        busy = np.zeros(len(first), np.int64)
        computing, copying = columns.of_kind("compute", "collective"), columns.of_kind("copy")
        np.add.at(busy, stream[computing], (columns.duration_ns * columns.runs)[computing])
        for number in distinct(stream[copying]).tolist():
            on_stream = copying & (stream == number)
            busy[number] += int(columns.covered_ns(on_stream, np.array([self.makespan_ns]))[0])
        names = [(columns.device.texts[d], columns.stream.texts[s]) for d, s in keys.T.tolist()]
        return {names[number]: int(busy[number]) for number in np.argsort(first).tolist()}

    def streams(self, device: str) -> list[str]:
        """Streams of a device that have events, in order of first appearance."""
        return [stream for name, stream in self._busy if name == device]

    def busy_ns(self, device: str, stream: str = COMPUTE_STREAM) -> int:
        """Nanoseconds in which the stream was occupied; copies at the same time count once."""
        return self._busy.get((device, stream), 0)

    def communication(self, device: str) -> tuple[int, int]:
        """(exposed, hidden) ns in which a collective is under way on the device.

        It is hidden while the device computes too, on any lane or stream, and exposed while it does not. Time in which
        a member waits for others is not counted, nor are transfers.
        """
        columns = self.columns
        own = columns.device.is_text(device)
        of_members = own & columns.of_kind("collective")
        covered = Covered(columns.start_ns[of_members], columns.end_ns[of_members])
        computing = own & columns.of_kind("compute")
        busy = columns.covered_ns(computing, covered.spans.reshape(-1)).reshape(-1, 2)
        total, hidden = int(np.diff(covered.spans).sum()), round(float(np.diff(busy).sum()))
        return total - hidden, hidden

    def busy_fraction(self, device: str, stream: str = COMPUTE_STREAM) -> float:
        """Share of the makespan in which the stream was occupied, 0 to 1."""
        return self.busy_ns(device, stream) / self.makespan_ns

    def link_loads(self, link: Link | str) -> list[LinkLoad]:
        """(from ns, to ns, bytes/s) that a link carried, in order, without the times in which it carried nothing.

        `link` is a `Link` or its name, which copies have for their `provenance`; one that no copy took has no loads.
        """
        return self._link_loads(link if isinstance(link, str) else link.name) if self._link_loads else []

    def peak_memory_bytes(self, device: str, place: MemoryPlace = "device") -> int:
        """The most bytes in use at once in the memory of the device, or in the host memory beside a GPU."""
        return self.peak_bytes.get((device, place), 0)

    def memory(self, device: str, place: MemoryPlace = "device") -> MemoryPeak:
        """The peak of one memory: the memory of the device, or what it has in the host's beside its own.

        InvalidArgumentError if the cluster has no such memory, or if the timeline was made without buffers.
        """
        if self._memory is None:
            raise InvalidArgumentError("the timeline knows no buffers; it does not come from a simulation")
        return self._memory.peak(device, place)

    @property
    def shortages(self) -> tuple[str, ...]:
        """A sentence for each memory that is too small, with its largest tensors; none if the step fits.

        Nor if the buffers are unknown.
        """
        return () if self._memory is None else self._memory.shortages

    @property
    def too_small(self) -> tuple[tuple[str, MemoryPlace], ...]:
        """The memories of `shortages`, as (device, "device" or "host")."""
        return () if self._memory is None else self._memory.too_small

    @property
    def transferred_bytes(self) -> int:
        """Bytes of all transfers; a byte that crosses several links counts once."""
        copies = self.columns.of_kind("copy")
        return _total(self.columns.bytes[copies], self.columns.runs[copies]) * self._stands_for.multiplicity

    @property
    def flops(self) -> int:
        """Operations of all ops, on all devices."""
        return _total(self.columns.flops, self.columns.runs) * self._stands_for.multiplicity

    def find(self, node: str) -> TimelineEvent:
        """The first event of a node that is no launch; InvalidArgumentError when it has none."""
        found = np.flatnonzero(self.columns.node.is_text(node) & ~self.columns.of_kind("launch"))
        if not len(found):
            raise InvalidArgumentError(f"no event of a node {node!r}; the timeline has {len(self.columns)} events")
        return self.columns[int(found[0])]

    def critical_path(self) -> list[TimelineEvent]:
        """The chain of causes of the event that ends last (the first recorded of several), in time order.

        Each event of the chain starts when the one before it ends, so their durations, times their runs, add up to the
        makespan. A copy that waited for a copy engine is an exception: it starts before the copy ends that had it.
        """
        last = int(np.argmax(self.columns.end_ns))
        path = []
        while last >= 0:
            path.append(last)
            last = int(self.columns.cause[last])
        return list(self.columns.rows(np.array(path[::-1], np.int64)))

    def interval_ns(self) -> tuple[int, int]:
        """Between which times four of five steps take, in ns; see `interval` for what it rests on.

        Raises InvalidArgumentError where a source of op times does not say how sure it is.
        """
        return interval_of(self.critical_path(), self.makespan_ns)

    @cached_property
    def sources(self) -> dict[str, int]:
        """Runs of ops that took time by the source of the time: {"fitted": 120, "roofline": 3}."""
        many = self._stands_for.multiplicity
        return {source: many * runs for source, runs in runs_by_source(self.columns).items()}

    @property
    def basis(self) -> str:
        """What the times of ops rest on, as reports print it: on measurements, partly, or on assumptions alone."""
        if not _MEASURED & self.sources.keys():
            return BASIS
        return FROM_MEASUREMENTS if self.sources.keys() <= _MEASURED else PARTLY_FROM_MEASUREMENTS

    def totals_by_op(self) -> list[OpTotal]:
        """Totals per op over the events that occupy their stream, of all devices, longest first, ties by name."""
        columns = self.columns
        counted = columns.of_kind(*OCCUPYING)
        names, ops = np.unique(columns.op.numbers[counted], return_inverse=True)
        runs = columns.runs[counted]
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for at, column in enumerate((np.ones_like(runs), columns.duration_ns, columns.flops, columns.bytes)):
            values = column if at == 0 else column[counted]
            for number, total in zip(names.tolist(), _grouped_totals(values, runs, ops, len(names)), strict=True):
                sums[columns.op.texts[number]][at] += total
        many = self._stands_for.multiplicity
        totals = [OpTotal(op, *(many * number for number in total)) for op, total in sums.items()]
        return sorted(totals, key=lambda t: (-t.time_ns, t.op))

    def render(self, width: int = 60) -> str:
        """A bar per stream, `width` characters for the makespan: full blocks are busy throughout, light ones partly."""
        lines = [f"makespan {format_ns(self.makespan_ns)}, {len(self.columns)} events"]
        for device in self.devices:
            lines.append(self._title(device))
            for stream in self.streams(device):
                if self.busy_ns(device, stream):
                    share = f"{100 * self.busy_fraction(device, stream):5.1f} %"
                    lines.append(f"  |{self._bar(device, stream, width)}| {share}  {stream}")
        return "\n".join([*lines, *(f"note: {text}" for text in self.warnings)])

    def _title(self, device: str) -> str:
        """The line above the bars of a device."""
        model = f"{self.models[device]}, " if device in self.models else ""
        others = len(self._stands_for.get(device, ()))
        stands_for = f"stands for {others} devices, " if others else ""
        return f"{device}  {model}{stands_for}peak memory {format_bytes(self.peak_memory_bytes(device))}"

    def _bar(self, device: str, stream: str, width: int) -> str:
        """Busy share of each of `width` equal parts of the makespan, as one character."""
        columns, span = self.columns, self.makespan_ns
        chosen = columns.device.is_text(device) & columns.stream.is_text(stream) & columns.of_kind(*OCCUPYING)
        # Occupied time before each bound of the parts; scaled by width, so that the bounds are whole numbers.
        covered = columns.covered_ns(chosen, np.arange(width + 1, dtype=np.float64) * span / width)
        filled = np.diff(covered) * width / span
        return "".join(" ░▒▓█"[ceil(4 * share - 1e-9)] for share in filled.tolist())


def _total(values: Numbers, runs: Numbers) -> int:
    """The sum of values times runs, exact where 64 bits do not suffice."""
    return _grouped_totals(values, runs, np.zeros(len(values), np.int64), 1)[0]


def _grouped_totals(values: Numbers, runs: Numbers, groups: Numbers, count: int) -> list[int]:
    """By group the sum of values times runs, exact where 64 bits do not suffice."""
    if float(np.abs(values).max(initial=0)) * float(runs.max(initial=0)) * max(len(values), 1) < 2**62:
        sums = np.zeros(count, np.int64)
        np.add.at(sums, groups, values * runs)
        totals: list[int] = sums.tolist()
        return totals
    totals = [0] * count
    for value, times, group in zip(values.tolist(), runs.tolist(), groups.tolist(), strict=True):
        totals[group] += value * times
    return totals


def start_times(timeline: Timeline) -> dict[str, int]:
    """Node name -> first start in microseconds (cut to a whole number), as `PartitionOptions.start_times` has them.

    A recv starts when it has its tensor; launches and copies are left out.
    """
    starts: dict[str, int] = {}
    for event in timeline.events:
        if event.kind not in ("copy", "launch"):
            start = (event.end_ns if event.kind == "recv" else event.start_ns) // 1000
            starts[event.node] = min(start, starts.get(event.node, start))
    return starts
