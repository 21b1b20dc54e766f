"""The interval of a makespan: laws of its bounds, what adds up and what does not, and what is refused."""

from __future__ import annotations

from math import hypot

import pytest
from hypothesis import given, strategies as st

from partita.devices.timing import BASIS, Timeline, TimelineEvent
from partita.errors import InvalidArgumentError

A = "/device:CPU:0"
OPS = st.sampled_from(["MatMul", "Conv2D", "Relu", "Neg"])
Row = tuple[str, str, int, int, int, int]
ROWS = st.lists(
    st.tuples(
        OPS,
        st.sampled_from(["fitted", "roofline"]),
        st.integers(1, 10**6),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.integers(1, 9),
    ),
    min_size=1,
)


def _chain(rows: list[Row], factor: int = 1) -> Timeline:
    """Ops one after the other: (op, source, duration, shorter by at most, longer by at most, runs)."""
    events, now = [], 0
    for k, (op, source, duration, shorter, longer, runs) in enumerate(rows):
        bounds = max(0, duration - shorter) * factor, (duration + longer) * factor
        end = now + duration * factor * runs
        events.append(
            TimelineEvent(
                A, "compute", f"n{k}", op, "compute", end - duration * factor, end, provenance=source, cause=k - 1,
                runs=runs, low_ns=bounds[0], high_ns=bounds[1],
            )
        )  # fmt: skip
        now = end
    return Timeline(events)


@given(ROWS, st.integers(2, 5))
def test_laws(rows: list[Row], factor: int) -> None:
    """The makespan is within the bounds, and all times scaled scale them, but for rounding."""
    timeline, scaled = _chain(rows), _chain(rows, factor)
    low, high = timeline.interval_ns()
    assert 0 <= low <= timeline.makespan_ns <= high
    for bound, larger in zip((low, high), scaled.interval_ns(), strict=True):
        assert abs(larger - factor * bound) <= factor


@given(ROWS)
def test_what_errs_together_errs_more(rows: list[Row]) -> None:
    """Equal deviations of one source and class are no narrower than those of several."""
    low, high = _chain(rows).interval_ns()
    together = _chain([("MatMul", "fitted", *row[2:]) for row in rows]).interval_ns()
    assert together[0] <= low
    assert together[1] >= high


def test_by_hand() -> None:
    """Two products of one fit add up; an op of another source is independent of them."""
    rows: list[Row] = [("MatMul", "fitted", 100, 10, 20, 1), ("MatMul", "fitted", 200, 20, 40, 1)]
    assert _chain(rows).interval_ns() == (270, 360)
    rows.append(("Relu", "roofline", 30, 40, 80, 1))
    assert _chain(rows).interval_ns() == (330 - round(hypot(30, 30) + 0.5), 330 + 100)


def test_sources_and_what_times_rest_on() -> None:
    """Runs by source; what is printed beside the times follows from them."""
    row: Row = ("MatMul", "fitted", 100, 10, 20, 2)
    mixed = _chain([row, ("Relu", "roofline", 30, 40, 80, 1)])
    assert mixed.sources == {"fitted": 2, "roofline": 1}
    assert mixed.basis == "op times partly from measurements"
    assert _chain([row]).basis == "op times from measurements"
    assert _chain([("Relu", "roofline", 30, 40, 80, 1)]).basis == BASIS


def test_a_source_without_bounds_is_refused() -> None:
    """The error names how many events and whose."""
    events = [TimelineEvent(A, "compute", "a", "Neg", "compute", 0, 5, provenance="mine")]
    with pytest.raises(InvalidArgumentError, match=r"1 events .*1 from 'mine'.*low_ns and high_ns"):
        Timeline(events).interval_ns()
