"""Memory accounting: peaks are sums of the buffers that are live at one instant, per memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partita.devices.memory import Buffer, Usage, courses, peaks

times = st.integers(0, 20)
buffers = st.lists(
    st.builds(
        Buffer, st.sampled_from("ab"), st.sampled_from(("device", "host")), times, times, st.integers(0, 100)
    ).map(lambda b: b._replace(end_ns=max(b.start_ns, b.end_ns)))
)


@given(buffers)
def test_peak_is_the_largest_sum_of_what_lives(drawn: list[Buffer]) -> None:
    """Compared with counting at every instant; buffers are live from their start up to, not at, their end."""
    actual = peaks(drawn)
    for memory in {(b.device, b.place) for b in drawn}:
        mine = [b for b in drawn if (b.device, b.place) == memory]
        slow = max(sum(b.size_bytes for b in mine if b.start_ns <= t < b.end_ns) for t in range(21))
        assert actual.get(memory, 0) == slow


@given(buffers)
def test_everything_is_given_back(drawn: list[Buffer]) -> None:
    """Usage ends at 0 and is never negative."""
    for course in courses(drawn).values():
        assert course[-1].in_use_bytes == 0
        assert min(usage.in_use_bytes for usage in course) >= 0


def test_course() -> None:
    """A buffer that ends at an instant is released before one that begins."""
    drawn = [Buffer("a", "device", 0, 5, 10), Buffer("a", "device", 5, 9, 20), Buffer("a", "host", 0, 1, 1)]
    assert courses(drawn)["a", "device"] == [Usage(0, 10), Usage(5, 20), Usage(9, 0)]
    assert peaks(drawn) == {("a", "device"): 20, ("a", "host"): 1}
