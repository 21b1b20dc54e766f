"""Lanes of events that overlap."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given

from partita.devices.timing import Timeline
from partita.devices.timing.events import Events, TimelineEvent
from partita.devices.timing.export.lanes import lanes_of

from .drawn import timelines


@given(timelines())
def test_in_a_lane_nothing_overlaps_and_no_lane_is_without_need(timeline: Timeline) -> None:
    """As many lanes as overlap at most of what occupies the stream, and as many for the rest."""
    events = timeline.columns
    lanes = lanes_of(events, events.duration_ns > 0).tolist()
    spans = defaultdict(list)
    for event, lane in zip(timeline.events, lanes, strict=True):
        if event.duration_ns:
            spans[event.device, event.stream, event.occupies, lane].append((event.start_ns, event.end_ns))
        else:
            assert lane == 0
    for own in spans.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(own)))
    for device, stream, occupies, _ in spans:
        alike = [e for e in timeline.events if (e.device, e.stream, e.occupies) == (device, stream, occupies)]
        instants = {e.start_ns for e in alike if e.duration_ns}
        at_once = max(sum(e.start_ns <= at < e.end_ns for e in alike) for at in instants)
        assert len([key for key in spans if key[:3] == (device, stream, occupies)]) == at_once


def test_the_lowest_free_lane_is_taken() -> None:
    """What does not occupy the stream comes behind what does; what is not spread stays in lane 0."""
    spans = [("copy", 0, 8), ("copy", 2, 5), ("copy", 4, 9), ("copy", 8, 9), ("recv", 0, 4), ("copy", 5, 5)]
    events = Events.of(TimelineEvent("d", "link", "t", "copy", kind, *ns) for kind, *ns in spans)  # type: ignore[arg-type]  # kinds as texts
    assert lanes_of(events, np.ones(6, np.bool_)).tolist() == [0, 1, 2, 0, 3, 0]
    assert lanes_of(events, events.of_kind("copy")).tolist() == [0, 1, 2, 0, 0, 0]
