"""Slow devices and degraded links: the arithmetic of windows, and its laws."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from partita.devices.profiles import Profiles, RandomWindows, Window
from partita.devices.timing.hardware.network import Network
from partita.devices.timing.hardware.profile import Pace, Profile, at_full_speed
from partita.devices.topology import Link, Route

from .test_network import Transfers

FACTORS = st.integers(1, 40).map(lambda tenths: Fraction(max(tenths, 10), 10))
WINDOWS = st.builds(
    lambda factor, start, length: Window(factor, start, start + length),
    FACTORS,
    st.integers(0, 500),
    st.integers(0, 500),
)
RANDOM = st.builds(RandomWindows, FACTORS, st.integers(0, 9), st.integers(1, 200), st.integers(1, 200))
TIMES = st.integers(0, 1000)


def end(start_ns: int, time_ns: int, *windows: Window | RandomWindows) -> int:
    """When work ends in these windows."""
    return Pace("gpu", windows).end(start_ns, time_ns)


def test_only_the_part_in_a_window_is_slow() -> None:
    """The example of the module, work around a window, work in two windows at once, rounding."""
    twice = Window(Fraction(2), 100, 200)
    assert end(60, 80, twice) == 180
    assert end(0, 100, twice) == 100
    assert end(0, 200, twice) == 250
    assert end(150, 100, twice) == 275
    assert end(200, 7, twice) == 207
    assert end(100, 30, twice, Window(Fraction(3, 2), 100, 130)) == 100 + 30 + 40
    assert end(0, 1, Window(Fraction(3, 2))) == 2


@given(TIMES, TIMES, st.lists(st.one_of(WINDOWS, RANDOM), max_size=3))
def test_a_factor_of_one_changes_nothing(start: int, time: int, windows: Sequence[Window | RandomWindows]) -> None:
    """Alone, and beside other windows."""
    idle: list[Window | RandomWindows] = [Window(Fraction(1), 100, 300), RandomWindows(Fraction(1), 1, 50, 50)]
    assert end(start, time, *idle) == start + time
    assert end(start, time, *windows, *idle) == end(start, time, *windows)


@given(TIMES, TIMES, WINDOWS, st.integers(0, 500))
def test_a_window_split_in_two_changes_nothing(start: int, time: int, window: Window, at: int) -> None:
    """At any instant inside it."""
    assert window.to_ns is not None
    middle = min(window.from_ns + at, window.to_ns)
    halves = Window(window.factor, window.from_ns, middle), Window(window.factor, middle, window.to_ns)
    assert end(start, time, *halves) == end(start, time, window)


@given(st.lists(TIMES, min_size=1, max_size=5), st.lists(st.one_of(WINDOWS, RANDOM), max_size=3), WINDOWS)
def test_more_slow_downs_never_end_a_chain_earlier(
    chain: list[int], windows: list[Window | RandomWindows], more: Window
) -> None:
    """Ops that run one after the other."""
    slow, slower = Pace("gpu", windows), Pace("gpu", [*windows, more])
    at = later = 0
    for time in chain:
        at, later = slow.end(at, time), slower.end(later, time)
        assert later >= at


def test_drawn_windows_are_those_of_their_seed() -> None:
    """The same for the same seed and name, others for another; with equal gaps and lengths half of the time is slow."""
    drawn = RandomWindows(Fraction(3), 7, 1000, 1000)
    first = [next(changes) for changes in [drawn.changes("gpu:0")] for _ in range(4)]
    assert first == [next(changes) for changes in [drawn.changes("gpu:0")] for _ in range(4)]
    assert first != [next(changes) for changes in [drawn.changes("gpu:1")] for _ in range(4)]
    assert [factor for _, factor in first] == [3, 1, 3, 1]
    assert end(0, 10**6, drawn) == pytest.approx(1.5 * 10**6, rel=0.1)


def test_devices_and_links_are_found_by_name() -> None:
    """A link by its name or its model; what has no windows runs at full speed."""
    link = Link("a", "b", "wire", 10**9, 0)
    twice = Window(Fraction(2))
    profile = Profile(Profiles(slow=(("gpu", twice),), degrade=(("wire", twice),)))
    assert profile.end_of("cpu") is at_full_speed
    assert profile.end_of("gpu")(5, 10) == 25
    assert profile.pace_of(Link("a", "b", "fibre", 10**9, 0)) is None
    for name in ("wire", "a -> b (wire)"):
        pace = Profile(Profiles(degrade=((name, twice),))).pace_of(link)
        assert pace is not None
        assert pace.factor(0) == 2


def arrivals(windows: Sequence[Window | RandomWindows], *requests: tuple[int, int], engines: int = 0) -> list[int]:
    """When transfers given as (request, bytes) over one link of 1 byte/ns arrive."""
    link = Link("a", "b", "wire", 10**9, 0, engines)
    transfers = Transfers()
    profile = Profile(Profiles(degrade=tuple(("wire", window) for window in windows)))
    transfers.network = Network(transfers.env, transfers, profile)
    route = Route((link,))
    for number, (at, size) in enumerate(requests):
        transfers.ask(at, number, route, size)
    transfers.env.run()
    assert all(load <= 10**9 for _, _, load in transfers.network.loads(link.name))
    return [transfers.ends[number] for number in range(len(requests))]


def test_a_degraded_link_shares_what_it_has() -> None:
    """From 100 to 200 half: 50 bytes; the second transfer begins in the window, and both share it."""
    window = Window(Fraction(2), 100, 200)
    assert arrivals([window], (0, 200)) == [250]
    assert arrivals([window], (0, 200), (150, 100)) == [325, 350]
    assert arrivals([window], (500, 10)) == [510]


@given(TIMES, st.integers(1, 1000), st.lists(WINDOWS, max_size=3))
def test_a_transfer_alone_takes_as_long_as_work(at: int, size: int, windows: list[Window]) -> None:
    """A link moves bytes as a device works; factors that do not divide are rounded down by less than a unit of rate."""
    exact = end(at, size, *windows)
    (arrived,) = arrivals(windows, (at, size))
    assert exact <= arrived <= exact + 1


def test_a_copy_engine_is_held_longer_on_a_degraded_link() -> None:
    """For the time of the bytes on that link at its pace."""
    assert arrivals([Window(Fraction(2))], (0, 100), (0, 100), engines=1) == [200, 400]
