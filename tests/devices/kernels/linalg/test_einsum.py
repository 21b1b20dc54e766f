"""Einsum is numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.linalg.matrices import numbers

EQUATIONS = ["ab,bc->ac", "abc,b->ca", "aab,b->a", "ab->", "ab,cd->", "a,->a", "...ab,...bc->...ac", "a...,a...->...a"]


@given(st.sampled_from(EQUATIONS), st.integers(0, 2), st.integers(0, 99))
def test_einsum_agrees_with_numpy(equation: str, extra: int, seed: int) -> None:
    """numpy's einsum sums term by term; ours goes through matrix products."""
    sizes = dict(zip("abcd", (2, 3, 4, 2), strict=True))
    inputs = []
    for i, term in enumerate(equation.split("->")[0].split(",")):
        head, dots, tail = term.partition("...")
        middle = (2, 1)[:extra] if dots else ()
        inputs.append(numbers(seed + i, *(sizes[x] for x in head), *middle, *(sizes[x] for x in tail), dtype="float64"))
    got = check_shapes("Einsum", inputs, equation=equation)
    np.testing.assert_allclose(got, np.einsum(equation, *inputs))


def test_einsum_lays_a_repeated_output_label_on_the_diagonal() -> None:
    """numpy refuses "a->aa"; TensorFlow writes a diagonal matrix."""
    np.testing.assert_array_equal(
        check_shapes("Einsum", [np.array([1, 2], np.float32)], equation="a->aa"), np.diag([1, 2])
    )


@pytest.mark.parametrize("equation", ["ab,bc", "a,b,c->abc", "ab->c", "...a->a"])
def test_equations_that_mean_nothing_are_refused(equation: str) -> None:
    """No arrow, three inputs, a label from nowhere, an ellipsis that is dropped."""
    inputs = [np.ones((2, 2), np.float32)] * (equation.split("->")[0].count(",") + 1)
    with pytest.raises(InvalidArgumentError):
        run("Einsum", inputs, equation=equation)
