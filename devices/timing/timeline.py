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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import InvalidArgumentError, Reason
from ...graph.arrays import Numbers, distinct
from ..cluster import Cluster
from ..topology import Link
from ..units import format_bytes, format_ns
from .covered import Covered
from .drawing import drawn
from .events import COMPUTE_STREAM, Events, TimelineEvent
from .frames import arrow_of, pandas_of
from .interval import interval_of, runs_by_source
from .link_use import LinkLoad, LinkUse
from .memory.curve import MemoryCurve
from .memory.kinds import MemoryPlace
from .memory.repeated_curve import repeated_curve
from .memory.use import MemoryPeak, MemoryUse
from .representatives.ranks import StandsFor
from .totals import OpTotal, total_over_runs, totals_by_op

BASIS = "assumed, not calibrated"
"""printed beside simulated times that follow from models of devices and links, not from measurements"""
FROM_MEASUREMENTS = "op times from measurements"
PARTLY_FROM_MEASUREMENTS = "op times partly from measurements"
_MEASURED = {"measured", "fitted", "transferred"}


if TYPE_CHECKING:
    from .tracing.coverage import Coverage


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
    `warnings` are the assumptions, as sentences; `assumed` has those about sizes and hardware one by one. `cluster`
    is that of the simulation, None where there was none. `columns` has the events in columns. `trace_coverage` says how
    many nodes of the step its trace knew; None of a step without one.
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
        cluster: Cluster | None = None,
        link_use: LinkUse | None = None,
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
        self.cluster = cluster
        self._dependency_bound_ns = dependency_bound_ns
        self._link_use = link_use or LinkUse()
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
    def buffers(self) -> MemoryUse | None:
        """The buffers of the step, which `memory` and `memory_over_time` answer from; None where nobody knows them."""
        return self._memory

    @property
    def representatives(self) -> StandsFor:
        """The devices that each device of the timeline stands for, by names; empty if each stands for itself alone.

        Events are those of the representatives; totals are of all devices.
        """
        return self._stands_for

    @cached_property
    def models(self) -> dict[str, str]:
        """The model of every device of the cluster, by full name; empty without a cluster."""
        return {device.name: device.spec.name for device in self.cluster or ()}

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
        streams = len(columns.stream.texts)
        pairs = columns.device.numbers.astype(np.int64) * streams + columns.stream.numbers
        keys, first, stream = np.unique(pairs, return_index=True, return_inverse=True)
        busy = np.zeros(len(first), np.int64)
        computing, copying = columns.of_kind("compute", "collective"), columns.of_kind("copy")
        np.add.at(busy, stream[computing], (columns.duration_ns * columns.runs)[computing])
        for number in distinct(stream[copying]).tolist():
            on_stream = copying & (stream == number)
            busy[number] += int(columns.covered_ns(on_stream, np.array([self.makespan_ns]))[0])
        numbers = (divmod(key, streams) for key in keys.tolist())
        names = [(columns.device.texts[d], columns.stream.texts[s]) for d, s in numbers]
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
        return self._link_use.loads(link if isinstance(link, str) else link.name)

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that carried something in the step, in order of first use, those of one instant by name."""
        return self._link_use.links

    def peak_memory_bytes(self, device: str, place: MemoryPlace = "device") -> int:
        """The most bytes in use at once in the memory of the device, or in the host memory beside a GPU."""
        return self.peak_bytes.get((device, place), 0)

    def memory(self, device: str, place: MemoryPlace = "device") -> MemoryPeak:
        """The peak of one memory: the memory of the device, or what it has in the host's beside its own.

        InvalidArgumentError if the cluster has no such memory, or if the timeline was made without buffers.
        """
        return self._known_memory().peak(device, place)

    def memory_over_time(self, device: str, place: MemoryPlace = "device") -> MemoryCurve:
        """The bytes in use in one memory over the step, by category; InvalidArgumentError as `memory`.

        UnimplementedError where an iteration that was played once stands for too many runs of it.
        """
        curve, runs = self._known_memory().curve(device, place), self.columns.all_runs
        return curve if runs is None else repeated_curve(curve, runs.spans)

    def _known_memory(self) -> MemoryUse:
        if self._memory is None:
            raise InvalidArgumentError("the timeline knows no buffers; it does not come from a simulation")
        return self._memory

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
        return total_over_runs(self.columns.bytes[copies], self.columns.runs[copies]) * self._stands_for.multiplicity

    @property
    def flops(self) -> int:
        """Operations of all ops, on all devices."""
        return total_over_runs(self.columns.flops, self.columns.runs) * self._stands_for.multiplicity

    def save(self, path: str | Path) -> None:
        """Writes everything to a file that ends in .timeline, whole or not at all; the same timeline, the same bytes.

        The dependency bound is found out for it. Raises InvalidArgumentError for another suffix, for events that end
        before they start, and for assumed values that are no texts, numbers or tuples; OSError where the file cannot be
        written.
        """
        from .timeline_file import write_timeline  # late: it reads timelines too, so it imports this module

        write_timeline(self, path)

    @staticmethod
    def load(path: str | Path) -> Timeline:
        """The timeline of a file that `save` wrote, equal in every answer; a `SessionTimeline` for that of a session.

        The file may come from anybody: nothing in it is executed. Raises NotFoundError where there is none,
        DataLossError for a damaged one, InvalidArgumentError for one of another format, or for wrong content.
        """
        from .timeline_file import read_timeline  # late, as above

        return read_timeline(path)

    def to_pandas(self) -> Any:  # Any: of a package that is no dependency
        """The events as a `pandas.DataFrame`: categories for texts, int64 for numbers, missing where nobody knows.

        Raises UnimplementedError where pandas is not installed, InvalidArgumentError for numbers beyond 64 bits.
        """
        return pandas_of(self.columns)

    def to_arrow(self) -> Any:  # Any: as above
        """The same as a `pyarrow.Table`, with dictionaries for texts; raises as `to_pandas`, of pyarrow."""
        return arrow_of(self.columns)

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
        return list(self.columns.rows(self.critical_path_numbers()))

    def critical_path_numbers(self) -> Numbers:
        """The events of `critical_path` by number."""
        last = int(np.argmax(self.columns.end_ns))
        path = []
        while last >= 0:
            path.append(last)
            last = int(self.columns.cause[last])
        return np.array(path[::-1], np.int64)

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
        return totals_by_op(self.columns, self._stands_for.multiplicity)

    def render(self, width: int = 60, *, curves: bool = True, most_devices: int | None = None) -> str:
        """A bar per stream, `width` characters for the makespan: full blocks are busy throughout, light ones partly.

        Below, with `curves`, the fullest memory and the busiest links on the same axis, and the warnings. Only the
        first `most_devices` have bars, all of them unless it is given.
        """
        return "\n".join(drawn(self, width, self._title, curves=curves, most_devices=most_devices))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {format_ns(self.makespan_ns)}: {len(self.columns):,} events>"

    def _repr_html_(self) -> str:
        from .notebook import timeline_html  # few timelines are shown

        return timeline_html(self)

    def _title(self, device: str) -> str:
        """The line above the bars of a device."""
        model = f"{self.models[device]}, " if device in self.models else ""
        others = len(self._stands_for.get(device, ()))
        stands_for = f"stands for {others} devices, " if others else ""
        return f"{device}  {model}{stands_for}peak memory {format_bytes(self.peak_memory_bytes(device))}"


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
