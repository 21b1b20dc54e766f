"""Numbers from one to another, both included, as values of an axis.

    linear_values(1, 7, step=2)             [1, 3, 5, 7]
    linear_values(0, 1, points=5)           [0.0, 0.25, 0.5, 0.75, 1.0]
    geometric_values(64, 1024, factor=4)    [64, 256, 1024]
    geometric_values(1, 1000, points=4)     [1, 10, 100, 1000]

Numbers are taken as they are written, so that tenths do not add up to 0.30000000000000004. Values are whole
numbers where all of them, and what was given, are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, isfinite, log

from ...errors import InvalidArgumentError, shown

AxisNumber = int | float
_MOST = 100_000  # values of one axis; more are a slip
_CLOSE = 1e-9  # by which a power may be off and still be whole


def linear_values(
    start: AxisNumber, stop: AxisNumber, *, step: AxisNumber | None = None, points: int | None = None
) -> list[AxisNumber]:
    """Values with equal differences: `step`, 1 unless given, or such that there are so many `points`.

    Ends at the last value that does not pass `stop`. Raises InvalidArgumentError for ends and steps that make no value.
    """
    first, last = _exact(start), _exact(stop)
    if points is not None:
        if step is not None:
            raise InvalidArgumentError("a range has a step or a number of points; leave one out")
        by = (last - first) / (_checked_points(points) - 1)
        return _numbers([first + k * by for k in range(points)], start, stop)
    by = _exact(1 if step is None else step)
    if by == 0 or (last - first) / by < 0:
        raise InvalidArgumentError(f"a range from {start} to {stop} by {by} has no value; turn the ends or the step")
    count = int(_checked_steps((last - first) / by)) + 1
    return _numbers([first + k * by for k in range(count)], start, by)


def geometric_values(
    start: AxisNumber, stop: AxisNumber, *, factor: AxisNumber | None = None, points: int | None = None
) -> list[AxisNumber]:
    """Values with equal ratios: `factor`, 2 unless given, or such that there are so many `points`. All are positive.

    Ends at the last value that does not pass `stop`. Raises InvalidArgumentError for ends and factors that make no
    value.
    """
    first, last = _exact(start), _exact(stop)
    if first <= 0 or last <= 0:
        raise InvalidArgumentError(f"a geometric range from {start} to {stop} must have positive ends")
    if points is not None:
        if factor is not None:
            raise InvalidArgumentError("a range has a factor or a number of points; leave one out")
        return _powers(first, last, _checked_points(points), isinstance(start, int) and isinstance(stop, int))
    by = _exact(2 if factor is None else factor)
    if by <= 0 or (last != first and (by == 1 or (last > first) != (by > 1))):
        raise InvalidArgumentError(f"a range from {start} to {stop} by factors of {by} has no end; turn the ends")
    if last == first:
        return _numbers([first], start)
    _checked_steps(log(last / first) / log(by))
    values = [first]
    while (values[-1] * by <= last) if by > 1 else (values[-1] * by >= last):
        values.append(values[-1] * by)
    return _numbers(values, start)


def _powers(first: Fraction, last: Fraction, points: int, are_whole: bool) -> list[AxisNumber]:
    low, high = log(first), log(last)
    inner = [exp(low + (high - low) * k / (points - 1)) for k in range(1, points - 1)]
    values = [float(first), *inner, float(last)]
    if are_whole and all(abs(value - round(value)) <= _CLOSE * value for value in values):
        return [round(value) for value in values]
    return values


def _exact(number: AxisNumber) -> Fraction:
    """The number as it is written in decimals; InvalidArgumentError for anything else."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
        raise InvalidArgumentError(f"{shown(number)} is no number that a range can have")
    return Fraction(str(number))


def _checked_points(points: int) -> int:
    if isinstance(points, bool) or not isinstance(points, int) or not 2 <= points <= _MOST:
        raise InvalidArgumentError(f"a range with {shown(points)} points: give a whole number from 2 to {_MOST:,}")
    return points


def _checked_steps(steps: float | Fraction) -> float | Fraction:
    if steps >= _MOST:
        raise InvalidArgumentError(f"a range with over {_MOST:,} values is too long for an axis; take a larger step")
    return steps


def _numbers(values: Sequence[Fraction], *given: AxisNumber | Fraction) -> list[AxisNumber]:
    """Whole numbers where all values are, and what was given; else floats."""
    are_whole = not any(isinstance(number, float) for number in given) and all(it.denominator == 1 for it in values)
    return [int(value) if are_whole else float(value) for value in values]
