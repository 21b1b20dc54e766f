"""Quantities with units as text -> integers in the one unit that the program uses for each dimension.

"900 GB/s", "40 GiB", "5 us" and "312 TFLOP/s" become bytes/s, bytes, ns and FLOP/s. What is no whole number of anything
becomes a float: "85 %" is 0.85, "2.50 $/h" 2.5 dollars an hour, "0.7 kW" 700.0 W, "50000 h" between failures 1.8e8 s. A
quantity without a unit, with a unit of another dimension or in another case is an error. Nothing is rounded: a result
that is not whole (half a byte) is an error, and so is a value beyond any hardware, as it must be a typing error.

Prefixes: k M G T P are powers of 1000, Ki Mi Gi Ti powers of 1024; B is a byte, b or bit is a bit (eight to a byte).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from ..errors import InvalidArgumentError

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
MOST_BYTES = 10**18  # an exabyte: of memory, or in a second
MOST_COUNT = 1 << 16  # lanes or engines of a device
MOST_NS = 10**12  # some 17 minutes
MOST_FLOPS_PER_S = 10**21
MOST_USD_PER_HOUR = 10**5
MOST_WATTS = 10**6
MOST_LIFETIME_S = 10**12  # some 30,000 years
_LONGEST = 64  # characters of a quantity
_QUANTITY = re.compile(r"\s*([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(\S.*?)?\s*")

_BYTES: dict[str, Fraction] = {f"{p}B": Fraction(n) for p, n in (_DECIMAL | _BINARY).items()}
_BITS = {f"{p}{b}": Fraction(n, 8) for p, n in _DECIMAL.items() for b in ("b", "bit")}
_BYTES_PER_S = {f"{unit}/s": factor for unit, factor in (_BYTES | _BITS).items()}
_NS = {name: Fraction(n) for name, n in (("ns", 1), ("us", 10**3), ("µs", 10**3), ("ms", 10**6), ("s", 10**9))}
_FLOPS_PER_S = {f"{p}{what}/s": Fraction(n) for p, n in _DECIMAL.items() for what in ("FLOP", "OP")}
_SHARE = {"%": Fraction(1, 100)}
_USD_PER_HOUR = {"$/h": Fraction(1), "USD/h": Fraction(1)}
_WATTS = {"W": Fraction(1), "kW": Fraction(1000)}
_LIFETIMES_S = {name: Fraction(n) for name, n in (("s", 1), ("min", 60), ("h", 3600), ("d", 86400))}


def _parse(text: str, units: Mapping[str, Fraction], what: str, example: str) -> Fraction:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{text!r} is no {what}: it has no unit; write text such as {example!r}")
    if len(text) > _LONGEST:
        raise InvalidArgumentError(f"{text[:_LONGEST]!r}... is no {what}: it is too long; write it as in {example!r}")
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f"{text!r} is no {what}; write a number and a unit, such as {example!r}")
    number, unit = match.groups()
    if unit is None:
        raise InvalidArgumentError(f"{text!r} is no {what}: it has no unit; write one, such as {example!r}")
    if unit not in units:
        known = ", ".join(units)
        raise InvalidArgumentError(f"{text!r} is no {what}: the unit {unit!r} is none of {known}; such as {example!r}")
    value = Fraction(number) * units[unit]
    if value < 0:
        raise InvalidArgumentError(f"{text!r} is no {what}: it is negative; write it as in {example!r}")
    return value


def _parse_within(
    text: str, units: Mapping[str, Fraction], what: str, example: str, smallest: str, most: int
) -> Fraction:
    value = _parse(text, units, what, example)
    if value > most:
        raise InvalidArgumentError(
            f"{text!r} is no {what} of any hardware: above {float(most):.0e} {smallest}; write it as in {example!r}"
        )
    return value


def _whole(text: str, units: Mapping[str, Fraction], what: str, example: str, smallest: str, most: int) -> int:
    value = _parse_within(text, units, what, example, smallest, most)
    if value.denominator != 1:
        raise InvalidArgumentError(f"{text!r} is no whole number of {smallest}; write a {what} such as {example!r}")
    return int(value)


def parse_bytes(text: str) -> int:
    """Bytes in an amount of memory, as in "40 GiB" or "80 GB"; InvalidArgumentError for anything else."""
    return _whole(text, _BYTES, "amount of memory", "40 GiB", "bytes", MOST_BYTES)


def parse_bytes_per_s(text: str) -> int:
    """Bytes/s of a bandwidth, as in "900 GB/s" or "100 Gbit/s"; InvalidArgumentError for anything else."""
    return _whole(text, _BYTES_PER_S, "bandwidth", "900 GB/s", "bytes per second", MOST_BYTES)


def parse_ns(text: str) -> int:
    """Nanoseconds of a duration, as in "5 us"; InvalidArgumentError for anything else."""
    return _whole(text, _NS, "duration", "5 us", "nanoseconds", MOST_NS)


def parse_flops_per_s(text: str) -> int:
    """Operations/s of a compute rate, as in "312 TFLOP/s" or "624 TOP/s"; InvalidArgumentError for anything else."""
    return _whole(text, _FLOPS_PER_S, "compute rate", "312 TFLOP/s", "operations per second", MOST_FLOPS_PER_S)


def parse_share(text: str) -> float:
    """A share between 0 and 1 of something, as in "85 %"; InvalidArgumentError unless above 0 % and at most 100 %."""
    value = _parse(text, _SHARE, "share", "85 %")
    if not 0 < value <= 1:
        raise InvalidArgumentError(f"{text!r} is no share: it must be above 0 % and at most 100 %, such as '85 %'")
    return float(value)


def parse_usd_per_hour(text: str) -> float:
    """US dollars an hour, as in "2.50 $/h" or "2.50 USD/h"; InvalidArgumentError for anything else. It may be zero."""
    return float(_parse_within(text, _USD_PER_HOUR, "price", "2.50 $/h", "dollars per hour", MOST_USD_PER_HOUR))


def parse_watts(text: str) -> float:
    """Watts of a power, as in "700 W" or "0.7 kW"; InvalidArgumentError for anything else, and for zero."""
    return _above_zero(_parse_within(text, _WATTS, "power", "700 W", "watts", MOST_WATTS), text, "power", "700 W")


def parse_lifetime_s(text: str) -> float:
    """Seconds of a mean time between failures, as in "50000 h" or "2000 d"; InvalidArgumentError as `parse_watts`."""
    what, example = "time between failures", "50000 h"
    return _above_zero(
        _parse_within(text, _LIFETIMES_S, what, example, "seconds", MOST_LIFETIME_S), text, what, example
    )


def _above_zero(value: Fraction, text: str, what: str, example: str) -> float:
    if not value:
        raise InvalidArgumentError(f"{text!r} is no {what}: it must be above 0, such as {example!r}")
    return float(value)


def format_bytes(count: int) -> str:
    """A byte count for people: "0 B", "1.50 KiB", "40.00 GiB"."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} TiB"


def format_rate(per_s: int | None) -> str:
    """A compute rate in TFLOP/s, as tables have it: "19.5", "0.2"; "-" for none."""
    return "-" if per_s is None else f"{per_s / 10**12:,.4g}"


def format_ns(count: int) -> str:
    """A duration for people, in the largest unit that keeps it above one: "0 ns", "1.234 us", "2.500 s"."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if count >= size:
            return f"{count / size:.3f} {unit}"
    return f"{count} ns"


def parse_count(text: object) -> int:
    """A count of 1 to 65,536, as a whole number or the text of one; InvalidArgumentError otherwise."""
    count = int(text) if isinstance(text, str) and text.isdecimal() else text
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_COUNT:
        raise InvalidArgumentError(f"{text!r} must be a whole number from 1 to {MOST_COUNT:,}")
    return count


def parse_multiprocessors(text: object) -> int:
    """A number of multiprocessors, as in "108 SMs" or "20 Xe cores"; a count alone will do."""
    if isinstance(text, str):
        text = text.removesuffix(" SMs").removesuffix(" Xe cores")
    return parse_count(text)


def parse_capability(text: object) -> int:
    """A compute capability, as in "sm 3.7" or "3.7", times 10."""
    major, _, minor = str(text).removeprefix("sm ").partition(".")
    if not (major.isascii() and major.isdecimal() and minor.isascii() and minor.isdecimal() and len(minor) == 1):
        raise InvalidArgumentError(f"{text!r} is no compute capability; write it as 'sm 7.5'")
    return 10 * int(major) + int(minor)
