"""Timelines that no simulation makes: any events on any devices, overlapping, with any texts and causes before them."""

from __future__ import annotations

from hypothesis import strategies as st

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.events import KINDS

HOSTILE = ("", "</script>", "=1+1", "\x1b[31m", "\u202eabc", "a\nb\x00", "\ud800", "long" * 2500)
"""names that are dangerous where a text is more than a text"""
_DEVICES = (
    "/job:worker/replica:0/task:0/device:GPU:0",
    "/job:worker/replica:0/task:1/device:GPU:0",
    "/job:worker/replica:1/task:0/device:CPU:0",
    "/job:ps/replica:0/task:0/device:CPU:0",
    "/job:ps/replica:0/task:0/cpu:0",
    "/device:CPU:0",
    "no device name",
)
_names = st.sampled_from(("a", "b/MatMul", *HOSTILE))


@st.composite
def _events(draw: st.DrawFn, number: int) -> TimelineEvent:
    """The event of that number, which may have any before it as its cause."""
    start, duration = draw(st.integers(0, 20)), draw(st.integers(0, 12))
    is_known = draw(st.booleans())
    return TimelineEvent(
        draw(st.sampled_from(_DEVICES)),
        draw(st.sampled_from(("compute", "launch", "PCIe4 to host", ""))),
        draw(_names),
        draw(_names),
        draw(st.sampled_from(KINDS)),
        start,
        start + duration,
        bytes=draw(st.integers(0, 1 << 66)),
        flops=draw(st.integers(0, 1 << 66)),
        provenance=draw(_names),
        cause=draw(st.integers(-1, number - 1)),
        iteration=draw(st.sampled_from(("", "outer:2/inner:0"))),
        runs=draw(st.integers(1, 3)),
        low_ns=duration // 2 if is_known else None,
        high_ns=2 * duration if is_known else None,
        step=draw(st.integers(0, 2)),
    )


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """A timeline of up to twelve events, one of which at least takes time."""
    events = [draw(_events(number)) for number in range(draw(st.integers(1, 12)))]
    last = events[-1]
    return Timeline([*events[:-1], last._replace(end_ns=max(last.end_ns, last.start_ns + 1))], warnings=["a guess"])
