"""What a function may return, and errors as rows have them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.scenarios.sweeps.results import ComputedRow, ResultValue, computed
from tests.scenarios.sweeps import swept


@pytest.mark.parametrize(
    ("returned", "results"),
    [
        (3, {"value": 3}),
        (0.5, {"value": 0.5}),
        (True, {"value": True}),
        (np.float32(0.5), {"value": 0.5}),
        (np.int16(7), {"value": 7}),
        (np.array([[2.0]]), {"value": 2.0}),
        (Fraction(1, 4), {"value": 0.25}),
        (
            {"a": "text", "b": None, "c": np.bool_(True), "d": np.str_("x")},
            {"a": "text", "b": None, "c": True, "d": "x"},
        ),
    ],
)
def test_numbers_and_mappings_are_results(returned: object, results: dict[str, ResultValue]) -> None:
    """As numbers, texts, true, false and None of Python."""
    row = computed(lambda x: returned, {"x": 1})
    assert row == ComputedRow(results, None)
    assert row.results is not None
    assert [type(value) for value in row.results.values()] == [type(value) for value in results.values()]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returned None; return a number"),
        ("text", "returned 'text'; return a number"),
        ([1, 2], "returned [1, 2]; return a number"),
        (np.arange(2), "return a number, or a mapping"),
        (1j, "returned 1j"),
        ({}, "empty mapping"),
        ({"a": [1]}, "returned [1] as 'a'"),
        ({"a": np.arange(2)}, "as 'a'; give a number or a text"),
        ({3: 1}, "the name 3"),
        ({"x": 1}, "'x', which is a column already"),
        ({"error": 1}, "'error', which is a column already"),
    ],
)
def test_anything_else_is_the_error_of_its_row(returned: object, words: str) -> None:
    """Which says what to return."""
    row = computed(lambda x: returned, {"x": 1})
    assert row.results is None
    assert words in (row.error or "")


def test_exceptions_are_errors_in_one_line() -> None:
    """With their type, unless they are ours; so is sys.exit; Ctrl-C comes out."""
    assert computed(swept.fails_for_three, {"a": 3, "b": 4}).error == "ValueError: no value at 4"
    assert computed(swept.leaves, {"a": 2}).error == "SystemExit: enough"

    def ours(x: int) -> None:
        raise InvalidArgumentError(f"{x} is wrong", node="n")

    assert computed(ours, {"x": 1}).error == "1 is wrong [node 'n']"
    with pytest.raises(KeyboardInterrupt):
        computed(swept.interrupted, {"a": 3})
