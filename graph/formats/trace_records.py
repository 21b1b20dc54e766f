"""StepStats -> records in plain values, of what hosts did and of what their accelerators did.

    device ".../device:GPU:0"               label "mm = MatMul(x, w)"      HOST, node mm, op MatMul
    device ".../device:GPU:0/stream:7"      node_name "mm:MatMul"          KERNEL on stream "stream 7"
    device "/device:GPU:0/memcpy"           node_name "x:MEMCPYHtoD"       COPY
    device ".../device:GPU:0/link"          node_name "x"                  COPY, as this package writes transfers

An accelerator has each kernel on the stream that ran it and once more in "/stream:all", and copies on streams too: each
is taken once. A record whose times cannot be is an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from ..protos import DeviceStepStats, NodeExecStats, StepStats
from .trace_runs import duration_ns, iteration_text, run_of, start_ns

_DEVICE = re.compile(r"(?P<device>.*?)/(?P<part>stream:(?:all|\d+)|memcpy|link)", re.DOTALL)
_ALL = "stream:all"
_COPIES = ("memcpy", "link")
_STANDS_FOR = re.compile(r" of \d+ devices$")
"""ends the name of a stream where this package has written a device that stands for others"""
_SIZE = re.compile(r"\b(?:size|num_bytes|bytes)[:=] ?(\d{1,18})\b")


class RecordKind(Enum):
    """What a record is of: what a host did, a kernel of its accelerator, or a copy."""

    HOST = auto()
    KERNEL = auto()
    COPY = auto()


class TraceRecord(NamedTuple):
    """One record; times in ns of the clock of the trace. `op` is "" where the trace does not tell.

    `stream` names the thread, or the stream of an accelerator, "" where nothing does. `bytes` are those of a copy, 0
    where the trace does not tell. `iteration` is "outer:2/inner:0" in a trace of this package.
    """

    device: str
    kind: RecordKind
    stream: str
    node: str
    op: str
    start_ns: int
    end_ns: int
    bytes: int = 0
    iteration: str = ""


def records_of(stats: StepStats) -> list[TraceRecord]:
    """All records, each once, in the order of their starts."""
    groups = _groups(stats)
    records: list[TraceRecord] = []
    for device, parts in groups.items():
        for part in _counted(parts):
            records += _of_part(device, part, parts[part], _copied(parts))
    return sorted(records, key=lambda record: (record.start_ns, record.end_ns))


def _groups(stats: StepStats) -> dict[str, dict[str, list[DeviceStepStats]]]:
    """What the trace has of each device, by part: "" for its host. An accelerator has the name that its host uses."""
    named = [(match["device"], match["part"]) if match else (name, "") for name, match in _matches(stats)]
    hosts = list(dict.fromkeys(device for device, part in named if not part))
    groups: defaultdict[str, defaultdict[str, list[DeviceStepStats]]] = defaultdict(lambda: defaultdict(list))
    for (device, part), of in zip(named, stats.dev_stats, strict=True):
        same = [host for host in hosts if host.endswith(device)] if part else []
        groups[same[0] if len(same) == 1 else device][part].append(of)
    return {device: dict(parts) for device, parts in groups.items()}


def _matches(stats: StepStats) -> Iterator[tuple[str, re.Match[str] | None]]:
    return ((of.device, _DEVICE.fullmatch(of.device)) for of in stats.dev_stats)


def _counted(parts: dict[str, list[DeviceStepStats]]) -> list[str]:
    """The parts that are taken: "stream:all" only where single streams are not there."""
    streams = [part for part in parts if part.startswith("stream:") and part != _ALL]
    return [part for part in parts if part != _ALL or not streams]


def _copied(parts: dict[str, list[DeviceStepStats]]) -> set[tuple[int, int]]:
    """When the copies of a device began and how long they took."""
    return {
        (start_ns(record), duration_ns(record))
        for part in _COPIES
        for of in parts.get(part, ())
        for record in of.node_stats
    }


def _of_part(
    device: str, part: str, groups: Sequence[DeviceStepStats], copied: set[tuple[int, int]]
) -> Iterator[TraceRecord]:
    for of in groups:
        names = _threads(of) if not part or of.thread_names else {}
        default = "" if part in ("", _ALL) else part.replace(":", " ")
        for record in of.node_stats:
            stream = names.get(record.thread_id, default)
            if not part:
                yield _of_host(device, stream, record)
            elif part in _COPIES or (start_ns(record), duration_ns(record)) not in copied:
                yield _of_accelerator(device, part, stream, record)


def _threads(of: DeviceStepStats) -> dict[int, str]:
    """Names of the threads of a group: those of the trace, else by number; "" for the only one."""
    numbers = {record.thread_id for record in of.node_stats}
    names = {n: of.thread_names.get(n, f"thread {n}" if len(numbers) > 1 else "") for n in numbers}
    return {n: _STANDS_FOR.sub("", name) for n, name in names.items()}


def _of_host(device: str, stream: str, record: NodeExecStats) -> TraceRecord:
    run, begin_ns = run_of(record), _begin_ns(record)
    node, op, iteration = record.node_name, "", ""
    if run is not None:
        node, op, iteration = run.node, run.op, iteration_text(run.iteration or ())
    end_ns = begin_ns + duration_ns(record)
    return TraceRecord(device, RecordKind.HOST, stream, node, op, begin_ns, end_ns, iteration=iteration)


def _of_accelerator(device: str, part: str, stream: str, record: NodeExecStats) -> TraceRecord:
    """A kernel or a copy; the name is "node:op", but for transfers, which have the names of tensors."""
    node, _, op = (record.node_name, "", "") if part == "link" else record.node_name.partition(":")
    kind = RecordKind.COPY if part in _COPIES else RecordKind.KERNEL
    size, begin_ns = _SIZE.search(record.timeline_label), _begin_ns(record)
    end_ns = begin_ns + duration_ns(record)
    return TraceRecord(device, kind, stream, node, op, begin_ns, end_ns, int(size[1]) if size else 0)


def _begin_ns(record: NodeExecStats) -> int:
    """When the op itself begins; the record begins when an executor turns to the node."""
    fine = record.op_end_rel_nanos
    return start_ns(record) + (record.op_start_rel_nanos if fine else 1000 * record.op_start_rel_micros)
