"""Grouped products: each group's rows times its matrix, and the matrices' gradients; and what does not fit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.half_types import widen
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes

TOLERANCES = {np.float64: 1e-13, np.float32: 1e-5, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Array, Array, Array, Array, bool]:
    """x, weights, a gradient of the product, rows per group (often 0), and whether the weights are transposed."""
    counts = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=1, max_size=4))
    k, n = draw(st.integers(0, 4)), draw(st.integers(1, 4))
    turned = draw(st.booleans())
    dtype, rows_dtype = draw(st.sampled_from(list(TOLERANCES))), draw(st.sampled_from([np.int32, np.int64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def normal(*shape: int) -> Array:
        return np.asarray(rng.standard_normal(shape).astype(dtype))

    weights = normal(len(counts), n, k) if turned else normal(len(counts), k, n)
    return normal(sum(counts), k), weights, normal(sum(counts), n), np.array(counts, rows_dtype), turned


def close(ours: Array, theirs: Array) -> None:
    """Within a rounding or two of the element type."""
    assert ours.shape == theirs.shape
    bound = TOLERANCES[ours.dtype.type]
    np.testing.assert_allclose(widen(ours), theirs, bound, bound * (1 + np.abs(theirs).max(initial=0.0)))


def parts(counts: Array) -> list[slice]:
    """The rows of each group."""
    ends = np.cumsum(counts).tolist()
    return [slice(end - count, end) for end, count in zip(ends, counts.tolist(), strict=True)]


@given(grouped())
def test_each_group_is_a_product_of_its_own(drawn: Any) -> None:
    """By numpy's products in float64, group after group, of every type and with empty groups."""
    x, weights, _, counts, turned = drawn
    product = check_shapes("Partita>GroupedMatMul", x, weights, counts, transpose_b=turned)
    wide, matrices = x.astype(float), weights.astype(float)
    matrices = matrices.swapaxes(1, 2) if turned else matrices
    expected = [wide[rows] @ matrix for rows, matrix in zip(parts(counts), matrices, strict=True)]
    close(product, np.concatenate(expected))


@given(grouped())
def test_the_weights_gradient_has_a_product_for_each_group(drawn: Any) -> None:
    """x^T g of its rows, zeros for an empty group; in the shape of the weights."""
    x, weights, slopes, counts, turned = drawn
    d_weights = check_shapes("Partita>GroupedMatMulGrad", x, slopes, counts, transpose_b=turned)
    assert d_weights.shape == weights.shape
    wide, of_product = x.astype(float), slopes.astype(float)
    expected = np.stack([wide[rows].T @ of_product[rows] for rows in parts(counts)])
    close(d_weights, expected.swapaxes(1, 2) if turned else expected)


def test_large_groups_are_right() -> None:
    """Products that are cut into blocks for several cores."""
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((700, 300)), rng.standard_normal((2, 300, 400))
    product = run("Partita>GroupedMatMul", x, weights, np.array([600, 100], np.int32))
    np.testing.assert_allclose(product, np.concatenate([x[:600] @ weights[0], x[600:] @ weights[1]]), 1e-10, 1e-10)


X, W, G = np.ones((3, 2)), np.ones((2, 2, 4)), np.ones((3, 4))
REFUSED: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "too few": ("", (X, W, [1, 1]), r"rows_per_group \[1, 1\] add up to 2 rows, but x has 3"),
    "too many": ("", (X, W, [2, 2]), r"add up to 4 rows, but x has 3"),
    "wrapping around": ("", (X, W, [2**31 - 1, 2**31 - 1]), "add up to 4294967294 rows"),
    "negative": ("", (X, W, [4, -1]), r"rows_per_group must not be negative, but are \[4, -1\]"),
    "other groups": ("", (X, W, [3]), "weights have 2 groups, but rows_per_group 1"),
    "a scalar": ("", (X, W, 3), r"rows_per_group has the shape \[\]; it must be of rank 1"),
    "weights of rank 2": ("", (X, W[0], [3]), "weights has the shape .*; it must be of rank 3"),
    "another k": ("", (np.ones((3, 3)), W, [1, 2]), r"rows of 3 elements, but weights \[2,2,4\] multiply rows of 2"),
    "gradient: too few": ("Grad", (X, G, [1, 1]), "add up to 2 rows, but x has 3"),
    "gradient: other rows": ("Grad", (X, G[:2], [1, 2]), "x has 3 rows and d_product 2"),
    "gradient: a vector": ("Grad", (X[0], G, [1, 2]), "x has the shape .*; it must be of rank 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name: str) -> None:
    """The message names the input, what is wrong and what would be right."""
    ending, (first, second, counts), message = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=message):
        run(f"Partita>GroupedMatMul{ending}", first, second, np.array(counts, np.int32))


def test_shapes_that_do_not_fit_are_refused_before_any_run() -> None:
    """As far as they are known; unknown rows stay unknown."""
    assert shapes("Partita>GroupedMatMul", (None, 2), (8, 2, 4), None) == [(None, 4)]
    assert shapes("Partita>GroupedMatMul", None, None, (8,), transpose_b=True) == [(None, None)]
    assert shapes("Partita>GroupedMatMulGrad", (5, 2), (None, 4), (8,), transpose_b=True) == [(8, 4, 2)]
    for inputs, message in (
        (((3, 2), (8, 3, 4), (8,)), "k is 2 by x and 3 by weights"),
        (((3, 2), (8, 2, 4), (7,)), "groups is 8 by weights and 7 by rows_per_group"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            shapes("Partita>GroupedMatMul", *inputs)
    for wrong in (0.5, float("nan"), float("inf")):
        with pytest.raises(InvalidArgumentError, match=r"assumed_imbalance = .* must be from 1.0 on"):
            shapes("Partita>GroupedMatMul", (3, 2), (8, 2, 4), (8,), assumed_imbalance=wrong)
    with pytest.raises(InvalidArgumentError, match="rows is 5 by x and 6 by d_product"):
        shapes("Partita>GroupedMatMulGrad", (5, 2), (6, 4), (8,))
