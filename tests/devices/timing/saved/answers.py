"""All that a timeline can be asked, so that two of them can be compared to the last field."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from partita.devices import Cluster
from partita.devices.timing import Timeline
from partita.devices.timing.memory.curve import MemoryCurve
from partita.devices.timing.session_timeline import SessionTimeline
from partita.devices.timing.timeline_file import timeline_bytes, timeline_from
from partita.errors import InvalidArgumentError, UnimplementedError


def reloaded(timeline: Timeline) -> Timeline:
    """What a file of the timeline is read as."""
    return timeline_from(timeline_bytes(timeline), "'step.timeline'")


def assert_equal(read: Timeline, timeline: Timeline) -> None:
    """Equal in all answers, one by one, so that a difference is found."""
    assert type(read) is type(timeline)
    expected, found = answers(timeline), answers(read)
    assert found.keys() == expected.keys()
    for question, answer in expected.items():
        assert found[question] == answer, question


def answers(timeline: Timeline) -> dict[str, object]:
    """Every field and question of a timeline."""
    columns, devices = timeline.columns, timeline.devices
    streams = [(device, stream) for device in devices for stream in timeline.streams(device)]
    instants = np.arange(0, timeline.makespan_ns + 1, max(1, timeline.makespan_ns // 50))
    return {
        "events": timeline.events,
        "step": columns.step is None,
        "dtypes": [columns.start_ns.dtype, columns.flops.dtype, columns.kind.dtype, columns.cause.dtype],
        "covered": columns.covered_ns(columns.of_kind("compute", "copy"), instants).tolist(),
        "devices": devices,
        "busy": [(*stream, timeline.busy_ns(*stream)) for stream in streams],
        "communication": [timeline.communication(device) for device in devices],
        "makespan": timeline.makespan_ns,
        "warnings": timeline.warnings,
        "assumed": timeline.assumed,
        "dependency bound": timeline.dependency_bound_ns,
        "coverage": timeline.trace_coverage,
        "path": timeline.critical_path(),
        "interval": answer(timeline.interval_ns),
        "totals": timeline.totals_by_op(),
        "flops": (timeline.flops, timeline.transferred_bytes, timeline.sources, timeline.basis),
        "render": timeline.render(),
        "models": timeline.models,
        "cluster": of_cluster(timeline.cluster),
        "links": timeline.links,
        "loads": [timeline.link_loads(link) for link in timeline.links],
        "representatives": dict(timeline.representatives),
        "mesh": (timeline.representatives.mesh, timeline.representatives.multiplicity),
        "session": of_session(timeline),
        **of_memory(timeline),
    }


def of_cluster(cluster: Cluster | None) -> object:
    """Devices, with costs, which equal devices may differ in, rules and profiles."""
    if cluster is None:
        return None
    return cluster.devices, [d.operating_costs for d in cluster], cluster.topology.rules, cluster.profiles


def of_session(timeline: Timeline) -> object:
    """What only a session has."""
    return timeline.steps if isinstance(timeline, SessionTimeline) else None


def of_memory(timeline: Timeline) -> dict[str, object]:
    """Peaks with all tensors, and curves, of all memories of the cluster."""
    memories = [(device.name, place) for device in timeline.cluster or () for place in ("device", "host")]
    return {
        "peaks": timeline.peak_bytes,
        "memory": [answer(lambda: timeline.memory(*memory)) for memory in memories],  # type: ignore[arg-type]  # noqa: B023
        "curves": [answer(lambda: of_curve(timeline.memory_over_time(*memory))) for memory in memories],  # type: ignore[arg-type]  # noqa: B023
        "shortages": (answer(lambda: timeline.shortages), timeline.too_small),
    }


def of_curve(curve: MemoryCurve) -> object:
    """A curve as lists."""
    return curve.at_ns.tolist(), {name: values.tolist() for name, values in curve.by_category.items()}


def answer(question: Callable[[], object]) -> object:
    """The answer, or the error."""
    try:
        return question()
    except (InvalidArgumentError, UnimplementedError) as error:
        return type(error), str(error)
