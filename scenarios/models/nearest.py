"""The sizes nearest to one that does not divide, as the end of an error text.

nearest_divisors(5, of=12)       (4, 6)
nearest_multiples(10, of=4)      (8, 12)
or_text((4, 6))                  "4 or 6"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


def nearest_divisors(wanted: int, of: int) -> tuple[int, ...]:
    """The divisor of `of` below or at `wanted` and the one above it, those that exist."""
    return nearest_where(wanted, range(1, of + 1), lambda size: of % size == 0)


def nearest_multiples(wanted: int, of: int) -> tuple[int, ...]:
    """The positive multiples of `of` below or at `wanted` and above it."""
    below = wanted // of * of
    return tuple(size for size in (below, below + of) if size > 0)


def nearest_where(wanted: int, sizes: Iterable[int], works: Callable[[int], bool]) -> tuple[int, ...]:
    """Of ascending `sizes` the last that works up to `wanted` and the first that works above it."""
    below: tuple[int, ...] = ()
    for size in sizes:
        if not works(size):
            continue
        if size > wanted:
            return (*below, size)
        below = (size,)
    return below


def or_text(sizes: Iterable[int]) -> str:
    """ "4 or 6"."""
    return " or ".join(map(str, sizes))
