"""When devices are slower and links carry less than their models say: windows of time with a factor.

A factor of 2 means twice as slow. Windows are given, or drawn: by a seed, a mean gap and a mean length. Where windows
of a device or a link overlap, their factors are multiplied. Times count from the start of the simulated clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import log1p
from zlib import crc32

from attrs import Attribute, field, frozen

from ..errors import InvalidArgumentError
from .topology import Link

_TO_UNIT = 2.0**-53  # of a random number of 53 bits


def _factor(owner: object, attribute: Attribute[Fraction], value: Fraction) -> None:
    if value < 1:
        raise InvalidArgumentError(f"factor = {value} must be at least 1: 2 is twice as slow")


def _length(owner: object, attribute: Attribute[int], value: int) -> None:
    if value < 1:
        raise InvalidArgumentError(f"{attribute.name} = {value} must be at least 1 ns")


@frozen
class Window:
    """`factor` from `from_ns` to `to_ns`; None is never."""

    factor: Fraction = field(validator=_factor)
    from_ns: int = 0
    to_ns: int | None = None

    def changes(self, name: str) -> Iterator[tuple[int, Fraction]]:
        """(instant, factor from then on), in order."""
        if self.to_ns is None or self.to_ns > self.from_ns:
            yield self.from_ns, self.factor
            if self.to_ns is not None:
                yield self.to_ns, Fraction(1)


@frozen
class RandomWindows:
    """`factor` in windows whose gaps and lengths are drawn: exponentially distributed, at least 1 ns.

    The numbers are those of PCG64 for the seed and the name of the device or link, so that what is drawn for one does
    not depend on the others.
    """

    factor: Fraction = field(validator=_factor)
    seed: int
    mean_gap_ns: int = field(validator=_length)
    mean_length_ns: int = field(validator=_length)

    def changes(self, name: str) -> Iterator[tuple[int, Fraction]]:
        """(instant, factor from then on), in order, without end."""
        from numpy.random import PCG64  # loads all generators of numpy, and few clusters have random windows

        bits = PCG64([self.seed, crc32(name.encode())])
        now = 0
        while True:
            for mean_ns, factor in ((self.mean_gap_ns, self.factor), (self.mean_length_ns, Fraction(1))):
                share = (int(bits.random_raw()) >> 11) * _TO_UNIT
                now += max(1, round(-mean_ns * log1p(-share)))
                yield now, factor


@frozen
class Profiles:
    """`slow` has windows of devices by full name, `degrade` of links by name, or by model for all links of a model."""

    slow: tuple[tuple[str, Window | RandomWindows], ...] = ()
    degrade: tuple[tuple[str, Window | RandomWindows], ...] = ()

    def of_device(self, name: str) -> list[Window | RandomWindows]:
        """The windows of a device."""
        return [windows for device, windows in self.slow if device == name]

    def of_link(self, link: Link) -> list[Window | RandomWindows]:
        """The windows of a link."""
        return [windows for name, windows in self.degrade if name in (link.name, link.model)]
