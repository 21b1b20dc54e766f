"""Peaks of memory: sums of the buffers that are live at one instant, per memory."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.timing.memory.peaks import Lives, Peak, peaks_of

times = st.integers(0, 20)
buffers = st.lists(
    st.tuples(st.integers(0, 3), times, times, st.integers(0, 100)).map(lambda b: (*b[:2], max(b[1:3]), b[3]))
)


def lives(rows: list[tuple[int, int, int, int]]) -> Lives:
    """Rows of memory, start, end and size as columns."""
    return Lives(*np.array(rows, np.int64).reshape(-1, 4).T)


@given(buffers)
def test_peak_is_the_largest_sum_of_what_lives(rows: list[tuple[int, int, int, int]]) -> None:
    """Compared with counting at every instant; buffers are live from their start up to, not at, their end."""
    peaks = peaks_of(lives(rows))
    for memory in range(4):
        in_use = [sum(size for m, start, end, size in rows if m == memory and start <= t < end) for t in range(21)]
        if any(in_use):
            assert peaks[memory] == (max(in_use), in_use.index(max(in_use)))
        else:
            assert memory not in peaks


@given(buffers, st.integers(2, 1000))
def test_peaks_grow_with_sizes(rows: list[tuple[int, int, int, int]], factor: int) -> None:
    """Buffers that are larger by a factor have peaks that are larger by it, at the same instants."""
    larger = peaks_of(lives([(memory, start, end, size * factor) for memory, start, end, size in rows]))
    assert larger == {m: Peak(size * factor, at) for m, (size, at) in peaks_of(lives(rows)).items()}


def test_what_ends_at_an_instant_is_released_before_what_begins() -> None:
    """10 bytes up to 5 ns and 20 from then on are never 30."""
    assert peaks_of(lives([(0, 0, 5, 10), (0, 5, 9, 20), (1, 0, 1, 1)])) == {0: (20, 5), 1: (1, 0)}
