"""How far work gets in time when it is slower in windows: the arithmetic of slow devices and degraded links.

A pace is a factor for every instant: where it is 2, work of 1 ns takes 2 ns. Work of 80 ns that starts at 60, with a
factor of 2 from 100 to 200, ends at 180:

    ns           60          100          180    200
    factor          |   1    |      2      |  2   |  1
    work done    0           40           80

Sums are exact fractions, and only the end is rounded up to a whole nanosecond: a window split in two changes nothing,
and a later start or a larger factor never ends earlier.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from heapq import merge
from math import ceil

from ...profiles import Profiles, RandomWindows, Window
from ...topology import Link

EndOf = Callable[[int, int], int]
"""from the start of an op and its time at full speed, in ns, to its end"""


def at_full_speed(start_ns: int, time_ns: int) -> int:
    """The end of an op on hardware that is never slowed down."""
    return start_ns + time_ns


class Pace:
    """The factor of one device or link over time. Drawn windows have no end, so changes are found as far as needed."""

    def __init__(self, name: str, windows: Iterable[Window | RandomWindows]) -> None:
        self._changes = _merged([window.changes(name) for window in windows])
        self._times = [0]
        self._factors = [Fraction(1)]
        self._is_complete = False

    def factor(self, at_ns: int) -> Fraction:
        """The factor at an instant."""
        return self._factors[self._index(at_ns)]

    def next_change(self, after_ns: int) -> int | None:
        """The first later instant with another factor; None if there is none."""
        following = self._index(after_ns) + 1
        return self._times[following] if following < len(self._times) else None

    def end(self, start_ns: int, time_ns: int | Fraction) -> int:
        """When work that starts at an instant ends, if at full speed it takes `time_ns`; rounded up."""
        index, at, left = self._index(start_ns), start_ns, Fraction(time_ns)
        while True:
            needs = left * self._factors[index]
            if index + 1 == len(self._times) or at + needs <= self._times[index + 1]:
                return at + ceil(needs)
            left -= (self._times[index + 1] - at) / self._factors[index]
            at = self._times[index + 1]
            index = self._index(at)

    def _index(self, at_ns: int) -> int:
        """The number of the change that holds at an instant; the one after it is known, unless it is the last."""
        while self._times[-1] <= at_ns and not self._is_complete:
            change = next(self._changes, None)
            if change is None:
                self._is_complete = True
            elif change[0] == self._times[-1]:
                self._factors[-1] = change[1]
            else:
                self._times.append(change[0])
                self._factors.append(change[1])
        return bisect_right(self._times, at_ns) - 1


def _merged(sources: list[Iterator[tuple[int, Fraction]]]) -> Iterator[tuple[int, Fraction]]:
    """The changes of several sources in order of time; their factors are multiplied."""
    factors = [Fraction(1)] * len(sources)
    numbered = [_numbered(source, number) for number, source in enumerate(sources)]
    for at, number, factor in merge(*numbered):
        factors[number] = factor
        product = Fraction(1)
        for each in factors:
            product *= each
        yield at, product


def _numbered(source: Iterator[tuple[int, Fraction]], number: int) -> Iterator[tuple[int, int, Fraction]]:
    for at, factor in source:
        yield at, number, factor


class Profile:
    """The paces of the devices and links of a cluster."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def end_of(self, device: str) -> EndOf:
        """From the start of an op on a device, and its time at full speed, to its end."""
        windows = self._profiles.of_device(device)
        return Pace(device, windows).end if windows else at_full_speed

    def pace_of(self, link: Link) -> Pace | None:
        """The pace of a link; None if it always carries all it can."""
        windows = self._profiles.of_link(link)
        return Pace(link.name, windows) if windows else None
