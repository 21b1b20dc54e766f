"""Timelines of drawn events, for laws about files."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from partita.devices.timing import Timeline
from partita.devices.timing.events import EventType, TimelineEvent
from partita.devices.timing.memory.kinds import MemoryPlace
from partita.devices.timing.timeline import Assumption
from partita.devices.timing.tracing.coverage import Coverage

NAMES = st.text(max_size=6) | st.sampled_from(["a", "b", "</script>", "\ud800", "\x1b[31m", "layer/mlp"])
"""few, so that equal ones come up"""
SIZES = st.integers(0, 2**80) | st.integers(0, 100)
BOUNDS = st.none() | st.integers(0, 10**6)
PLACES: tuple[MemoryPlace, ...] = get_args(MemoryPlace)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


@st.composite
def events(draw: st.DrawFn, index: int) -> TimelineEvent:
    """One event, whose cause is one before it."""
    start = draw(st.integers(0, 2**62) if draw(st.booleans()) else st.integers(0, 1000))
    return TimelineEvent(
        device=draw(NAMES),
        stream=draw(NAMES),
        node=draw(NAMES),
        op=draw(NAMES),
        kind=draw(st.sampled_from(get_args(EventType))),
        start_ns=start,
        end_ns=start + draw(st.integers(0, 2**62) | st.integers(0, 100)),
        bytes=draw(SIZES),
        flops=draw(SIZES),
        provenance=draw(NAMES),
        cause=draw(st.integers(-1, index - 1)),
        iteration=draw(st.sampled_from(["", "w:0", "w:1-99"])),
        runs=draw(st.integers(1, 5)),
        low_ns=draw(BOUNDS),
        high_ns=draw(BOUNDS),
        step=draw(st.integers(0, 3)),
    )


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """A timeline of no cluster; the last of its events takes time."""
    count = draw(st.integers(0, 12))
    drawn = [draw(events(index)) for index in range(count)]
    drawn.append(TimelineEvent("last", "compute", "y", "Neg", "compute", 0, draw(st.integers(1, 10**6))))
    return Timeline(
        drawn,
        warnings=draw(st.lists(NAMES, max_size=2)),
        assumed=[Assumption(*row) for row in draw(st.lists(st.tuples(NAMES, NAMES, VALUES), max_size=2))],
        peak_bytes=draw(st.dictionaries(st.tuples(NAMES, st.sampled_from(PLACES)), SIZES, max_size=3)),
        dependency_bound_ns=draw(SIZES),
        trace_coverage=draw(st.none() | st.builds(Coverage, st.integers(0, 9), st.integers(0, 9))),
    )
