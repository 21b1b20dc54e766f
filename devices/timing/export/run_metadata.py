"""Timeline -> StepStats and RunMetadata, which TensorFlow's profiler tools and TensorBoard's graph view read.

There is a DeviceStepStats per device for its nodes, and another with "/link" behind the device name for its transfers;
nodes are in order of start. Microsecond fields are cut to whole numbers, the nanosecond fields beside them are exact.
Nodes that take no time are included, because a graph view colours every node that ran.
"""

from __future__ import annotations

from pathlib import Path

from ....graph.protos import DeviceStepStats, NodeExecStats, RunMetadata, StepStats
from ..events import COMPUTE_STREAM, TimelineEvent
from ..timeline import Timeline

_MICRO = 1000


def step_stats(timeline: Timeline) -> StepStats:
    """Statistics of the step; times are relative to its start, which is 0."""
    return StepStats(dev_stats=[_device(timeline, device) for device in _keys(timeline)])


def run_metadata(timeline: Timeline) -> RunMetadata:
    """The message that a traced session run returns."""
    return RunMetadata(step_stats=step_stats(timeline))


def write_run_metadata(timeline: Timeline, path: str | Path) -> None:
    """Writes the message to a file, binary, fields in a fixed order."""
    Path(path).write_bytes(run_metadata(timeline).SerializeToString(deterministic=True))


def _key(event: TimelineEvent) -> tuple[str, bool]:
    return event.device, event.kind == "copy"


def _keys(timeline: Timeline) -> list[tuple[str, bool]]:
    return sorted(set(map(_key, timeline.events)))


def _device(timeline: Timeline, key: tuple[str, bool]) -> DeviceStepStats:
    device, copies = key
    events = sorted((e for e in timeline.events if _key(e) == key), key=lambda e: (e.start_ns, e.end_ns))
    streams = {stream: i for i, stream in enumerate(timeline.streams(device))}
    return DeviceStepStats(
        device=f"{device}/link" if copies else device,
        node_stats=[_node(event, streams[event.stream]) for event in events],
        thread_names={i: stream for stream, i in streams.items() if (stream != COMPUTE_STREAM) is copies},
    )


def _node(event: TimelineEvent, thread: int) -> NodeExecStats:
    duration_ns = event.duration_ns
    return NodeExecStats(
        node_name=event.node,
        timeline_label=f"{event.node} = {event.op}()",
        thread_id=thread,
        scheduled_micros=event.start_ns // _MICRO,
        scheduled_nanos=event.start_ns,
        all_start_micros=event.start_ns // _MICRO,
        all_start_nanos=event.start_ns,
        op_end_rel_micros=duration_ns // _MICRO,
        op_end_rel_nanos=duration_ns,
        all_end_rel_micros=duration_ns // _MICRO,
        all_end_rel_nanos=duration_ns,
    )
