"""Timeline -> StepStats and RunMetadata, which TensorFlow's profiler tools and TensorBoard's graph view read.

It is laid out as TensorFlow's tracer does, since tfprof counts by the names of devices:

    .../device:GPU:0               what its host does for it: launches, sends, receives, ops that launch nothing
    .../device:GPU:0/stream:all    the kernels that were launched, as "node:op": the time of the accelerator
    .../device:GPU:0/link          transfers, which no tool of TensorFlow counts as ops

Nodes are in order of start. Microsecond fields are cut to whole numbers, the nanosecond fields beside them are exact.
Where devices stand for others, the names of their threads say for how many.
The step starts at 1 us, because tools take a start of 0 for none and leave the node out. Nodes that take no time are
included, because a graph view colours every node that ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from pathlib import Path

from ....graph.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from ..events import TimelineEvent
from ..saved.whole_file import write_whole
from ..timeline import Timeline
from .utf8 import valid

_MICRO = 1000
START_NS = 1000
"""of the step: at 1 us, which is no time of a real clock"""
_KERNELS = "/stream:all"


def step_stats(timeline: Timeline) -> StepStats:
    """Statistics of the step, which starts at 1 us."""
    groups: defaultdict[tuple[str, str], list[TimelineEvent]] = defaultdict(list)
    launched = {(event.device, event.node) for event in timeline.events if event.kind == "launch"}
    for event in timeline.events:
        groups[event.device, _part(event, launched)].append(event)
    return StepStats(dev_stats=[_device(timeline, *key, groups[key]) for key in sorted(groups)])


def run_metadata(timeline: Timeline) -> RunMetadata:
    """The message that a traced session run returns."""
    return RunMetadata(step_stats=step_stats(timeline))


def write_run_metadata(timeline: Timeline, path: str | Path) -> None:
    """Writes the message to a file, binary, fields in a fixed order."""
    write_whole(path, run_metadata(timeline).SerializeToString(deterministic=True))


def _part(event: TimelineEvent, launched: Container[tuple[str, str]]) -> str:
    """What follows the name of the device."""
    if event.kind == "copy":
        return "/link"
    return _KERNELS if event.kind == "compute" and (event.device, event.node) in launched else ""


def _device(timeline: Timeline, device: str, part: str, events: list[TimelineEvent]) -> DeviceStepStats:
    streams = {stream: i for i, stream in enumerate(timeline.streams(device))}
    used = {event.stream for event in events}
    others = len(timeline.representatives.get(device, ()))
    stood_for = f" of {others} devices" if others else ""
    return DeviceStepStats(
        device=valid(f"{device}{part}"),
        node_stats=[_node(e, streams[e.stream], part) for e in sorted(events, key=lambda e: (e.start_ns, e.end_ns))],
        thread_names={i: valid(f"{stream}{stood_for}") for stream, i in streams.items() if stream in used},
    )


def _node(event: TimelineEvent, thread: int, part: str) -> NodeExecStats:
    start_ns, duration_ns = event.start_ns + START_NS, event.duration_ns
    return NodeExecStats(
        node_name=valid(f"{event.node}:{event.op}" if part == _KERNELS else event.node),
        timeline_label=valid(f"{event.node} = {event.op}()"),
        thread_id=thread,
        scheduled_micros=start_ns // _MICRO,
        scheduled_nanos=start_ns,
        all_start_micros=start_ns // _MICRO,
        all_start_nanos=start_ns,
        op_end_rel_micros=duration_ns // _MICRO,
        op_end_rel_nanos=duration_ns,
        all_end_rel_micros=duration_ns // _MICRO,
        all_end_rel_nanos=duration_ns,
    )
