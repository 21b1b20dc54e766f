"""The trace of a step -> its timeline: what happened when, as recorded, so that it can stand beside a simulated one.

    record                                     event
    GPU:0            mm = MatMul(x, w)         launch, as the device has a kernel of that node
    GPU:0/stream:7   mm:MatMul                 compute, on the stream "stream 7"
    GPU:0/memcpy     x:MEMCPYHtoD              copy
    CPU:0            f = PartitionedCall(x)    wait: the nodes of the function have records of their own
    CPU:0            r = _Recv()               recv

Times count from the first record. The timeline has no causes, no cluster, no memory and no loads of links. All times
are "measured", or "simulated" where an exporter of this package wrote the trace. Where records of one thread overlap,
those that begin later get lanes of their own ("thread 3 (2)"), so that computing events of a stream do not overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....graph.formats.trace_records import RecordKind, TraceRecord, records_of
from ....graph.formats.traces import step_stats_of
from ....graph.ops.registry import find_op
from ..events import COMMUNICATION_STREAM, COMPUTE_STREAM, OCCUPYING, EventType, TimelineEvent
from ..export.run_metadata import START_NS
from ..timeline import Timeline

if TYPE_CHECKING:
    from ....graph.formats.traces import TraceSource

_DURATIONS_ALONE = "the trace tells when ops ran, and not why: no causes, no memory over time, no use of links"
_OF_SIMULATION = "a simulation wrote the trace: its times were not measured"


def recorded_timeline(source: TraceSource) -> Timeline:
    """The timeline of a StepStats or RunMetadata, TensorFlow's too: a message, bytes, or the path of a binary file.

    Raises InvalidArgumentError for anything else, and for a trace in which nothing takes time; NotFoundError for a file
    that cannot be read.
    """
    records = records_of(step_stats_of(source))
    is_simulated = records[0].start_ns == START_NS
    of_hosts = (record for record in records if record.op and record.kind is RecordKind.HOST)
    reading = _Reading(
        begin_ns=records[0].start_ns,
        provenance="simulated" if is_simulated else "measured",
        kernels={(record.device, record.node) for record in records if record.kind is RecordKind.KERNEL},
        ops={(record.device, record.node): record.op for record in of_hosts},
    )
    warnings = [_DURATIONS_ALONE, *((_OF_SIMULATION,) if is_simulated else ())]
    return Timeline(_in_lanes([reading.event(record) for record in records]), warnings=warnings)


class _Reading(NamedTuple):
    """What all records of a trace together say, by device and node: which have kernels, and what op they are."""

    begin_ns: int
    provenance: str
    kernels: set[tuple[str, str]]
    ops: dict[tuple[str, str], str]

    def event(self, record: TraceRecord) -> TimelineEvent:
        """The event of a record."""
        node = record.device, record.node
        kind = _kind(record, node in self.kernels)
        return TimelineEvent(
            device=record.device,
            stream=record.stream or _STREAM_OF.get(kind, COMPUTE_STREAM),
            node=record.node,
            op=record.op or "copy" if kind == "copy" else self.ops.get(node, "") or record.op or "unknown",
            kind=kind,
            start_ns=record.start_ns - self.begin_ns,
            end_ns=record.end_ns - self.begin_ns,
            bytes=record.bytes,
            provenance=self.provenance,
            iteration=record.iteration,
        )


_STREAM_OF: dict[EventType, str] = {"launch": "launch", "wait": "wait", "copy": "memcpy"}


def _kind(record: TraceRecord, has_kernel: bool) -> EventType:
    if record.kind is RecordKind.COPY:
        return "copy"
    if record.stream.partition(":")[0] == COMMUNICATION_STREAM:
        return "collective"
    if record.kind is RecordKind.KERNEL:
        return "compute"
    return "launch" if has_kernel else _kind_on_host(record)


def _kind_on_host(record: TraceRecord) -> EventType:
    """What the op says; a record without an op is that of a transfer between tasks, for which a thread waits."""
    if not record.op or record.stream == "wait":
        return "wait"
    signature = find_op(record.op)
    if signature is None:
        return "compute"
    facts = signature.record
    if facts.is_send:
        return "send"
    if facts.is_recv:
        return "recv"
    return "compute" if facts.calls is None else "wait"


def _in_lanes(events: Sequence[TimelineEvent]) -> Iterator[TimelineEvent]:
    """The events, in order of start, each computing one on the first lane of its stream that is free."""
    ends: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for event in events:
        if event.kind not in OCCUPYING or event.kind == "copy":
            yield event
            continue
        lanes = ends[event.device, event.stream]
        lane = next((n for n, end_ns in enumerate(lanes) if end_ns <= event.start_ns), len(lanes))
        lanes[lane : lane + 1] = [event.end_ns]
        yield event if not lane else event._replace(stream=f"{event.stream} ({lane + 1})")
