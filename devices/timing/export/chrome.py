"""Timeline -> Chrome trace, the JSON that chrome://tracing, Perfetto and speedscope open.

The object form of the Trace Event Format: a process per device, a thread per stream, a complete event ("X") per event
that occupies its stream for some time, an instant ("i") at the end of every other event, and flow arrows: from each
copy to the op that the receiving device runs next, and from what a collective waited for last to its members. Times are
microseconds with three decimals, so no nanosecond is lost below 2**53 us. A slice has the bounds of its duration as
arguments, where they are known. The same timeline gives the same bytes.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from typing import Any

from ..events import COMPUTE_STREAM, TimelineEvent
from ..timeline import Timeline

ChromeEvent = dict[str, Any]  # JSON: numbers, texts and nested records by key
_Places = dict[tuple[str, str], ChromeEvent]  # by device and stream its process and thread


def chrome_trace(timeline: Timeline) -> ChromeEvent:
    """The trace as an object for `json.dump`; `otherData` has the makespan in ns, the models and all warnings.

    Where devices stand for others, it has the mesh, and by device for how many.
    """
    processes = {device: pid for pid, device in enumerate(timeline.devices, 1)}
    threads: dict[tuple[str, str], int] = {}
    for device in timeline.devices:
        for tid, stream in enumerate(timeline.streams(device), 1):
            threads[device, stream] = tid
    slices = _Slices(timeline)
    places: _Places = {key: {"pid": processes[key[0]], "tid": tid} for key, tid in threads.items()}
    events = [_named("process_name", pid, 0, device) for device, pid in processes.items()]
    events += [_named("thread_name", processes[device], tid, stream) for (device, stream), tid in threads.items()]
    for index, event in enumerate(timeline.events):
        events.append(_event(event) | places[event.device, event.stream])
        events += _arrow(timeline, index, event, places, slices)
    other = {
        "makespan_ns": timeline.makespan_ns,
        "times": timeline.basis,
        "models": dict(timeline.models),
        "warnings": list(timeline.warnings),
    }
    if timeline.representatives:
        other["representatives"] = _stood_for(timeline)
    return {"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}


def _stood_for(timeline: Timeline) -> ChromeEvent:
    stands_for = timeline.representatives
    return {"mesh": stands_for.mesh, "devices": {name: len(devices) for name, devices in stands_for.items()}}


def write_chrome_trace(timeline: Timeline, path: str | Path) -> None:
    """Writes the trace to a file, one line, keys in a fixed order."""
    Path(path).write_text(json.dumps(chrome_trace(timeline), separators=(",", ":")) + "\n", encoding="utf-8")


def _named(what: str, pid: int, tid: int, name: str) -> ChromeEvent:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(event: TimelineEvent) -> ChromeEvent:
    record: ChromeEvent = {"name": event.node, "cat": event.kind}
    if _is_slice(event):
        record |= {"ts": event.start_ns / 1000, "ph": "X", "dur": event.duration_ns / 1000}
    else:
        record |= {"ts": event.end_ns / 1000, "ph": "i", "s": "t"}
    args: ChromeEvent = {"op": event.op, "bytes": event.bytes, "flops": event.flops, "provenance": event.provenance}
    if _is_slice(event) and event.low_ns is not None:
        args |= {"low_ns": event.low_ns, "high_ns": event.high_ns}
    if event.step:
        args["step"] = event.step
    return record | {"args": args}


def _is_slice(event: TimelineEvent) -> bool:
    return event.occupies and event.duration_ns > 0


class _Slices:
    """The start times of the slices of each device and stream."""

    def __init__(self, timeline: Timeline) -> None:
        self._starts: dict[tuple[str, str], list[int]] = defaultdict(list)
        for event in timeline.events:
            if _is_slice(event):
                self._starts[event.device, event.stream].append(event.start_ns)
        for starts in self._starts.values():
            starts.sort()

    def next_start_ns(self, device: str, stream: str, after_ns: int) -> int | None:
        """Start of the first slice that starts at `after_ns` or later."""
        starts = self._starts[device, stream]
        at = bisect_left(starts, after_ns)
        return starts[at] if at < len(starts) else None


def _arrow(timeline: Timeline, index: int, event: TimelineEvent, places: _Places, slices: _Slices) -> list[ChromeEvent]:
    """A flow arrow from a copy to the first op that the receiving device starts after the tensor arrived.

    And one to a member of a collective from what let it begin on another device, which came last. Both ends must be
    slices, and a recv is not one. There is no arrow when no op follows or the copy took no time.
    """
    if event.cause < 0 or event.kind not in ("recv", "collective"):
        return []
    cause = timeline.events[event.cause]
    if not _is_slice(cause) or (cause.kind == "copy") != (event.kind == "recv"):
        return []
    if event.kind == "collective":
        if cause.device == event.device or not _is_slice(event):
            return []
        return _flow("last member", index, cause, places, (event.device, event.stream, event.start_ns))
    end_ns = slices.next_start_ns(event.device, COMPUTE_STREAM, event.end_ns)
    if end_ns is None:
        return []
    return _flow("transfer", index, cause, places, (event.device, COMPUTE_STREAM, end_ns))


def _flow(name: str, index: int, start: TimelineEvent, places: _Places, end: tuple[str, str, int]) -> list[ChromeEvent]:
    """The two ends of an arrow; `end` is a device, a stream and an instant."""
    device, stream, end_ns = end
    common = {"name": name, "cat": name, "id": index}
    return [
        common | {"ph": "s", "ts": start.start_ns / 1000} | places[start.device, start.stream],
        common | {"ph": "f", "bp": "e", "ts": end_ns / 1000} | places[device, stream],
    ]
