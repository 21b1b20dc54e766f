"""Timeline -> Chrome trace, the JSON that chrome://tracing, Perfetto and speedscope open.

The object form of the Trace Event Format: a process per device, a thread per stream (several for one whose copies
overlap), a complete event ("X") per event that occupies its stream for some time, an instant ("i") at the end of every
other event, and flow arrows: from each copy to the op that the receiving device runs next, and from what a collective
waited for last to its members. Counters ("C") are those of `counters`; those of links are in a process of their own.
Times are microseconds with three decimals, so no nanosecond is lost below 2**53 us. The same timeline gives the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..events import OCCUPYING, TimelineEvent
from ..saved.whole_file import write_whole
from ..timeline import Timeline
from .arguments import event_arguments, step_arguments
from .arrows import Arrow, arrows_of
from .counters import Counter, counters_of
from .lanes import lanes_of

ChromeEvent = dict[str, Any]  # JSON: numbers, texts and nested records by key


def chrome_trace(timeline: Timeline) -> ChromeEvent:
    """The trace as an object for `json.dump`; `otherData` tells about the step, as `step_arguments` says."""
    columns = timeline.columns
    lanes = lanes_of(columns, columns.of_kind(*OCCUPYING)).tolist()
    counters = counters_of(timeline)
    with_memory = [counter.device for counter in counters if counter.device is not None]
    processes = {device: pid for pid, device in enumerate(dict.fromkeys([*timeline.devices, *with_memory]), 1)}
    threads = _threads(timeline, lanes)
    places: list[ChromeEvent] = [
        {"pid": processes[event.device], "tid": threads[event.device, event.stream, lane]}
        for event, lane in zip(timeline.events, lanes, strict=True)
    ]
    events = [_named("process_name", pid, 0, device) for device, pid in processes.items()]
    events += [_named("thread_name", processes[device], tid, stream) for (device, stream, _), tid in threads.items()]
    events += [_event(event) | place for event, place in zip(timeline.events, places, strict=True)]
    for arrow in arrows_of(columns):
        events += _flow(arrow, timeline, places)
    events += _counted(counters, processes)
    return {"displayTimeUnit": "ns", "otherData": step_arguments(timeline), "traceEvents": events}


def write_chrome_trace(timeline: Timeline, path: str | Path) -> None:
    """Writes the trace to a file, one line, keys in a fixed order."""
    write_whole(path, (json.dumps(chrome_trace(timeline), separators=(",", ":")) + "\n").encode())


def _threads(timeline: Timeline, lanes: list[int]) -> dict[tuple[str, str, int], int]:
    """The number of the thread of each device, stream and lane, from 1 on in each process; a stream's come together."""
    used: dict[tuple[str, str], int] = {}
    for event, lane in zip(timeline.events, lanes, strict=True):
        key = event.device, event.stream
        used[key] = max(used.get(key, 0), lane + 1)
    threads: dict[tuple[str, str, int], int] = {}
    for device in timeline.devices:
        own = [(device, stream, lane) for stream in timeline.streams(device) for lane in range(used[device, stream])]
        threads |= {key: tid for tid, key in enumerate(own, 1)}
    return threads


def _named(what: str, pid: int, tid: int, name: str) -> ChromeEvent:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _event(event: TimelineEvent) -> ChromeEvent:
    record: ChromeEvent = {"name": event.node, "cat": event.kind}
    if event.occupies and event.duration_ns > 0:
        record |= {"ts": event.start_ns / 1000, "ph": "X", "dur": event.duration_ns / 1000}
    else:
        record |= {"ts": event.end_ns / 1000, "ph": "i", "s": "t"}
    return record | {"args": event_arguments(event)}


def _flow(arrow: Arrow, timeline: Timeline, places: list[ChromeEvent]) -> list[ChromeEvent]:
    """The two ends of an arrow, which lie in slices."""
    common = {"name": arrow.name, "cat": arrow.name, "id": arrow.number}
    start, end = timeline.events[arrow.source], timeline.events[arrow.target]
    return [
        common | {"ph": "s", "ts": start.start_ns / 1000} | places[arrow.source],
        common | {"ph": "f", "bp": "e", "ts": end.start_ns / 1000} | places[arrow.target],
    ]


def _counted(counters: list[Counter], processes: dict[str, int]) -> Iterator[ChromeEvent]:
    """The values of the counters. Links belong to no device: they have the process after the last one."""
    links = len(processes) + 1
    if any(counter.device is None for counter in counters):
        yield _named("process_name", links, 0, "links")
    for counter in counters:
        common = {
            "ph": "C",
            "name": counter.name,
            "pid": links if counter.device is None else processes[counter.device],
        }
        for at_ns, value in zip(counter.at_ns.tolist(), counter.values.tolist(), strict=True):
            yield common | {"ts": at_ns / 1000, "args": {counter.unit: value}}
