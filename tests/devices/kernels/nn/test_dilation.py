"""Dilation is the maximum of input plus filter over real cells, and its gradients follow the maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run


@settings(max_examples=30)
@given(st.integers(0, 99), st.integers(1, 2), st.integers(1, 2), st.sampled_from(["SAME", "VALID"]))
def test_dilation_and_its_gradients(seed: int, stride: int, rate: int, padding: str) -> None:
    """Adding c to the filter adds c everywhere; gradients of a sum count each maximum once on either side."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((1, 5, 6, 2)), rng.standard_normal((2, 3, 2))
    attrs: dict[str, Any] = {"strides": [1, stride, stride, 1], "rates": [1, rate, rate, 1], "padding": padding}
    y = check_shapes("Dilation2D", x, w, **attrs)
    np.testing.assert_allclose(run("Dilation2D", x, w + 3, **attrs), y + 3)
    ones = np.ones_like(y)
    dx = check_shapes("Dilation2DBackpropInput", x, w, ones, **attrs)
    dw = check_shapes("Dilation2DBackpropFilter", x, w, ones, **attrs)
    assert dx.sum() == dw.sum() == y.size
    np.testing.assert_allclose(np.vdot(dx, x) + np.vdot(dw, w), y.sum())


def test_a_flat_filter_is_max_pooling() -> None:
    """A structuring function of zeros leaves the maximum of the window."""
    x = np.random.default_rng(0).standard_normal((2, 5, 5, 3)).astype(np.float32)
    pooled = run("MaxPool", x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = np.zeros((3, 3, 3), np.float32)
    got = run("Dilation2D", x, flat, strides=[1, 2, 2, 1], rates=[1, 1, 1, 1], padding="SAME")
    np.testing.assert_array_equal(got, pooled)


def test_the_gradient_of_a_transposed_image_is_not_lost() -> None:
    """Inputs that are views have the gradients of the same numbers in row-major order."""
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((1, 5, 4, 2)).swapaxes(1, 2), rng.standard_normal((3, 2, 2)).swapaxes(0, 1)
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        expected = run(op, np.ascontiguousarray(x), np.ascontiguousarray(w), np.ones((1, 4, 5, 2)), **attrs)
        np.testing.assert_array_equal(run(op, x, w, np.ones((1, 4, 5, 2)), **attrs), expected)
        assert expected.sum() == 40


def test_where_nothing_is_higher_than_the_lowest_number() -> None:
    """NaN and -inf win no maximum: the lowest number comes out, and the first cell in the image takes the gradient."""
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    flat, grad = np.zeros((3, 3, 1), np.float32), np.arange(1, 10, dtype=np.float32).reshape(1, 3, 3, 1)
    for value in (-np.inf, np.nan):
        x = np.full((1, 3, 3, 1), value, np.float32)
        assert (run("Dilation2D", x, flat, **attrs) == np.finfo(np.float32).min).all()
        assert run("Dilation2DBackpropInput", x, flat, grad, **attrs).ravel().tolist() == [12, 9, 0, 15, 9, 0, 0, 0, 0]
        assert run("Dilation2DBackpropFilter", x, flat, grad, **attrs).ravel().tolist() == [45, *[0] * 8]


def test_gradients_are_added_in_the_order_of_the_outputs() -> None:
    """Of 1, 1e8 and -1e8 for one cell the one is lost, which a sum by cells of the window would keep."""
    x = np.array([0, 9, 0], np.float32).reshape(1, 3, 1, 1)
    grad = np.array([1, 1e8, -1e8], np.float32).reshape(1, 3, 1, 1)
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    got = run("Dilation2DBackpropInput", x, np.zeros((3, 1, 1), np.float32), grad, **attrs)
    assert got.ravel().tolist() == [0, 0, 0]


def test_depths_must_agree() -> None:
    """One structuring function per channel."""
    attrs: dict[str, Any] = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    with pytest.raises(InvalidArgumentError, match="input and filter must have the same depth: 3 vs 2"):
        run("Dilation2D", np.ones((1, 3, 3, 3), np.float32), np.ones((1, 1, 2), np.float32), **attrs)
