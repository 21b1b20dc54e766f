"""Counters of a timeline: the memory and the links that it knows, as values that change."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export.counters import Counter, counters_of
from partita.graph import Graph
from tests.devices.timing.test_simulation_laws import random_parts, run

from .drawn import timelines


def value_at(counter: Counter, at_ns: int) -> float:
    """The value at an instant; 0 before the first."""
    row = int(np.searchsorted(counter.at_ns, at_ns, side="right")) - 1
    return float(counter.values[row]) if row >= 0 else 0.0


@given(random_parts(), st.integers(0, 50))
def test_they_are_what_the_timeline_answers(parts: dict[str, Graph], latency_ns: int) -> None:
    """At every instant of a step: the bytes of each category, of all together, and the rate of every link."""
    timeline = run(parts, latency_ns=latency_ns)
    if timeline is None:
        return
    counters = {(counter.device, counter.name): counter for counter in counters_of(timeline)}
    for counter in counters.values():
        assert (np.diff(counter.at_ns) > 0).all()
        assert np.diff(counter.values).all()
    for device, place in timeline.peak_bytes:
        curve = timeline.memory_over_time(device, place)
        for part, expected in {"": curve.total, **{f": {name}": it for name, it in curve.by_category.items()}}.items():
            counter = counters.pop((device, f"{place} memory{part}"), Counter("", None, "bytes", *np.zeros((2, 0))))
            assert [value_at(counter, at_ns) for at_ns in curve.at_ns] == expected.tolist()
    for link in timeline.links:
        counter = counters.pop((None, link.name))
        for start_ns, end_ns, rate in timeline.link_loads(link):
            assert value_at(counter, start_ns) == value_at(counter, end_ns - 1) == rate
        assert counter.values[-1] == 0
    assert not counters


@given(timelines())
def test_what_is_not_known_has_none(timeline: Timeline) -> None:
    """Neither buffers nor links of a timeline by hand, also if it has peaks."""
    assert counters_of(timeline) == []
    event = TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, 1)
    assert counters_of(Timeline([event], peak_bytes={("/device:CPU:0", "device"): 7})) == []
