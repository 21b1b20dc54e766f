"""Axes: products, lists that go together, conditions, values, and the order of points."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import SweepAxes

VALUES = st.lists(st.integers(0, 9) | st.text(max_size=2) | st.none(), min_size=1, max_size=4, unique_by=repr)


@given(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1, max_size=4))
def test_a_product_is_that_of_itertools(axes: dict[str, list[Any]]) -> None:  # Any: values of axes
    """The last axis changes fastest."""
    expected = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    assert list(SweepAxes(axes).points()) == expected


@given(VALUES, st.lists(st.integers(), min_size=1, max_size=4, unique=True))
def test_lists_of_one_group_go_together(first: list[Any], second: list[int]) -> None:  # Any: values of axes
    """A row has a value of each."""
    axes = SweepAxes([{"a": first}, {"b": second, "c": second[::-1]}])
    assert axes.names == ("a", "b", "c")
    assert [(it["a"], it["b"], it["c"]) for it in axes.points()] == [
        (a, b, c) for a in first for b, c in zip(second, second[::-1], strict=True)
    ]


def test_conditions_leave_points_out() -> None:
    """Texts and functions, all of which must hold."""
    axes = {"tp": [1, 2, 4], "pp": [1, 2, 4]}
    both = SweepAxes(axes, where=["tp * pp <= 4", lambda tp, pp: tp != pp])
    assert [tuple(it.values()) for it in both.points()] == [(1, 2), (1, 4), (2, 1), (4, 1)]
    assert len(list(SweepAxes(axes, where="tp == 1").points())) == 3


@given(st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1, max_size=3))
def test_single_changes_have_every_value(axes: dict[str, list[Any]]) -> None:  # Any: values of axes
    """In as few points as there are values, and each is a point."""
    swept = SweepAxes(axes)
    changes = list(swept.single_changes())
    assert {(name, repr(value)) for point in changes for name, value in point.items()} == {
        (name, repr(value)) for name, values in axes.items() for value in values
    }
    assert len(changes) == sum(map(len, axes.values())) - len(axes) + 1


def test_values_are_plain() -> None:
    """Numbers of numpy become Python's; lists become tuples; paths stay paths."""
    given_values = [np.int64(3), np.float32(0.5), True, None, ["x", 1], Path("f"), "t"]
    axes = SweepAxes({"a": given_values, "b": np.arange(2)})
    values = [point["a"] for point in axes.points() if point["b"] == 0]
    assert values == [3, 0.5, True, None, ("x", 1), Path("f"), "t"]
    assert [type(value) for value in values[:2]] == [int, float]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "no axis"),
        ({"a": []}, "no value"),
        ({"a": "text"}, "must be a list"),
        ({"a": 3}, "must be a list"),
        ({"a": {"b": 1}}, "must be a list"),
        ({"a": [1, 1]}, "value 1 twice"),
        ({"a": [object()]}, "is no value of an axis"),
        ({"a": [float("nan")]}, "nan is no value"),
        ({"a": [[["x"]]]}, "is no value of an axis"),
        ({"": [1]}, "no name"),
        ({3: [1]}, "no name"),
        ([{"a": [1]}, {"a": [2]}], "'a' is given twice"),
        ([{"a": [1, 2], "b": [1]}], "'a' has 2, 'b' has 1"),
        ([{"a": [1, 1], "b": [2, 2]}], "axes 'a', 'b' have the value 1, 2 twice"),
    ],
)
def test_axes_that_cannot_be_are_refused(axes: Mapping[str, Any], words: str) -> None:  # Any: what is no axis
    """With the name of the axis."""
    with pytest.raises(InvalidArgumentError, match=words):
        SweepAxes(axes)


def test_true_and_one_are_two_values() -> None:
    """As in JSON, though they are equal in Python; so are 1 and 1.0."""
    assert len(list(SweepAxes({"a": [1, True, 1.0]}).points())) == 3
