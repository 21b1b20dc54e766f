"""Ranges of numbers: ends, steps, factors, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import geometric_values, linear_values

DECIMALS = st.integers(-1000, 1000).map(lambda n: n / 10)


@given(DECIMALS, st.integers(1, 50).map(lambda n: n / 10), st.integers(0, 30))
def test_steps_are_exact(start: float, step: float, count: int) -> None:
    """Each value is the nearest float to the decimal number, and the last is the end."""
    exact = [Fraction(str(start)) + k * Fraction(str(step)) for k in range(count + 1)]
    assert linear_values(start, float(exact[-1]), step=step) == [float(value) for value in exact]


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 9))
def test_whole_numbers_are_those_of_range(start: int, stop: int, step: int) -> None:
    """With the end included."""
    if start <= stop:
        values = linear_values(start, stop, step=step)
        assert values == list(range(start, stop + 1, step))
        assert {type(value) for value in values} == {int}
    else:
        assert linear_values(start, stop, step=-step) == list(range(start, stop - 1, -step))


@given(st.integers(1, 9), st.integers(2, 5), st.integers(0, 12))
def test_factors_multiply(start: int, factor: int, count: int) -> None:
    """Up and down."""
    values = [start * factor**k for k in range(count + 1)]
    assert geometric_values(start, values[-1], factor=factor) == values
    assert geometric_values(values[-1], start, factor=1 / factor if factor in (2, 4) else 0.5)[0] == values[-1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (linear_values(0, 1, points=5), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (linear_values(8, 64, points=8), [8, 16, 24, 32, 40, 48, 56, 64]),
        (linear_values(1, 2, step=0.4), [1.0, 1.4, 1.8]),
        (linear_values(5, 5), [5]),
        (geometric_values(1, 1000, points=4), [1, 10, 100, 1000]),
        (geometric_values(1, 4, points=2), [1, 4]),
        (geometric_values(1, 4, points=4)[0::3], [1.0, 4.0]),
        (geometric_values(64, 1000), [64, 128, 256, 512]),
        (geometric_values(3, 3), [3]),
    ],
)
def test_points_and_defaults(values: list[float], expected: list[float]) -> None:
    """Both ends are there with points; whole numbers stay whole where all are."""
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: linear_values(1, 5, step=-1), "turn the ends"),
        (lambda: linear_values(1, 5, step=0), "turn the ends"),
        (lambda: linear_values(1, 5, step=1, points=2), "leave one out"),
        (lambda: linear_values(1, 5, points=1), "from 2 to"),
        (lambda: linear_values(0, 1e9), "too long"),
        (lambda: linear_values(0, float("inf")), "no number"),
        (lambda: linear_values(True, 5), "no number"),
        (lambda: geometric_values(0, 5), "positive"),
        (lambda: geometric_values(1, 5, factor=1), "has no end"),
        (lambda: geometric_values(1, 5, factor=0.5), "has no end"),
        (lambda: geometric_values(1, 1e300, factor=1.0001), "too long"),
        (lambda: geometric_values(1, 5, factor=2, points=2), "leave one out"),
    ],
)
def test_ranges_without_values_are_refused(make: object, words: str) -> None:
    """The error says what to change."""
    assert callable(make)
    with pytest.raises(InvalidArgumentError, match=words):
        make()
