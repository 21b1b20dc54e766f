"""What a trace says beside names and times: of an event, and of the whole step. All forms of traces say the same.

{"op": "MatMul", "bytes": 49152, "flops": 524288, "provenance": "fitted", "low_ns": 3600, "high_ns": 4100}
{"makespan_ns": 19402, "times": "op times from measurements", "models": {...}, "warnings": [...]}
"""

from __future__ import annotations

from collections.abc import Mapping

from ..events import TimelineEvent
from ..timeline import Timeline

TraceArgument = str | int | list["TraceArgument"] | Mapping[str, "TraceArgument"]


def event_arguments(event: TimelineEvent) -> dict[str, str | int]:
    """Op, bytes, operations and source of an event; the bounds of its duration, if it takes time and they are known.

    Its iteration, for how many runs it stands, and its step, where there is something to say.
    """
    told: dict[str, str | int] = {
        "op": event.op,
        "bytes": event.bytes,
        "flops": event.flops,
        "provenance": event.provenance,
    }
    if event.low_ns is not None and event.high_ns is not None and event.duration_ns > 0:
        told |= {"low_ns": event.low_ns, "high_ns": event.high_ns}
    if event.iteration:
        told["iteration"] = event.iteration
    if event.runs != 1:
        told["runs"] = event.runs
    if event.step:
        told["step"] = event.step
    return told


def step_arguments(timeline: Timeline) -> dict[str, TraceArgument]:
    """The makespan in ns, what times rest on, the models and all warnings.

    Where devices stand for others, it has the mesh, and by device for how many.
    """
    told: dict[str, TraceArgument] = {
        "makespan_ns": timeline.makespan_ns,
        "times": timeline.basis,
        "models": dict(timeline.models),
        "warnings": list(timeline.warnings),
    }
    if stands_for := timeline.representatives:
        counts = {name: len(devices) for name, devices in stands_for.items()}
        told["representatives"] = {"mesh": stands_for.mesh, "devices": counts}
    return told
