"""The devices of a step for its page, and the lanes of its timeline: a row for each stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....devices.timing import Timeline
from ....devices.timing.events import COMPUTE_STREAM
from ....errors import UnimplementedError
from .names import PageNames
from .page_data import Document


def device_records(timeline: Timeline, names: PageNames) -> list[Document]:
    """The devices that have events, in the order of the cluster if there is one."""
    return [_device(timeline, names, device) for device in _in_order(timeline, names)]


def lane_records(timeline: Timeline, names: PageNames, texts: Mapping[str, Sequence[str]]) -> list[Document]:
    """A lane for each stream, by device; both are numbers into the texts of the columns of events."""
    number_of = {column: {text: number for number, text in enumerate(texts[column])} for column in ("device", "stream")}
    return [
        {
            "device": number_of["device"][device],
            "stream": number_of["stream"][stream],
            "name": names.short(stream),
            "busy": timeline.busy_fraction(device, stream),
        }
        for device in _in_order(timeline, names)
        for stream in timeline.streams(device)
    ]


def _in_order(timeline: Timeline, names: PageNames) -> list[str]:
    if names.cluster is None:
        return sorted(timeline.devices)
    place = names.cluster.numbers
    return sorted(timeline.devices, key=lambda device: place.get(device, len(place)))


def _device(timeline: Timeline, names: PageNames, device: str) -> Document:
    exposed_ns, hidden_ns = timeline.communication(device)
    return {
        "name": device,
        "short": names.short(device),
        "model": names.model(device),
        "stands_for": len(timeline.representatives.get(device, (device,))),
        "busy": busy_share(timeline, device),
        "peak_bytes": _peak_bytes(timeline, device),
        "exposed_ns": exposed_ns,
        "hidden_ns": hidden_ns,
    }


def busy_share(timeline: Timeline, device: str) -> float:
    """The share of the makespan in which the device computes: on its stream, or without one on any thread of it."""
    if COMPUTE_STREAM in timeline.streams(device):
        return timeline.busy_fraction(device)
    columns = timeline.columns
    computing = columns.device.is_text(device) & columns.of_kind("compute")
    covered = columns.covered_ns(computing, np.array([timeline.makespan_ns]))
    return float(covered[0]) / timeline.makespan_ns


def _peak_bytes(timeline: Timeline, device: str) -> int | None:
    """None for the timeline of a session, which knows no memory."""
    try:
        return timeline.peak_memory_bytes(device)
    except UnimplementedError:
        return None
