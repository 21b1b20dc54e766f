"""Reductions agree with numpy in double precision, over any axes, and say what is wrong with bad ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.draws import COMPLEX_TYPES, FLOAT_TYPES, INTEGER_TYPES, NUMBERS, arrays, filled, tolerance
from tests.devices.kernels.harness import check_shapes, run, shapes

REDUCTIONS: dict[str, Callable[..., Array]] = {
    "Sum": np.sum,
    "Prod": np.prod,
    "Mean": np.mean,
    "Max": np.max,
    "Min": np.min,
}


@st.composite
def axes_of(draw: st.DrawFn, rank: int) -> tuple[int, ...]:
    """Distinct axes of a tensor of that rank, each counted from the front or the back."""
    chosen = draw(st.lists(st.integers(0, rank - 1), unique=True)) if rank else []
    return tuple(axis - rank * draw(st.booleans()) for axis in chosen)


@pytest.mark.parametrize("op", REDUCTIONS)
@given(x=arrays(FLOAT_TYPES), data=st.data(), keep=st.booleans())
def test_floats_agree_with_double_precision(op: str, x: Array, data: st.DataObject, keep: bool) -> None:
    """Over any axes, in any order and counted from either end; the inferred shape is that of the result."""
    axes = data.draw(axes_of(x.ndim))
    actual = check_shapes(op, x, np.array(axes, np.int32), keep_dims=keep)
    if x.size:
        expected = REDUCTIONS[op](x.astype(np.float64), axis=axes, keepdims=keep)
        rtol = tolerance(x.dtype) * 10
        np.testing.assert_allclose(np.asarray(actual).astype(np.float64), expected, rtol=rtol, atol=rtol)


@given(arrays(INTEGER_TYPES, -128, 127), st.sampled_from(["Sum", "Prod", "Max", "Min"]))
def test_integers_wrap_in_their_own_type(x: Array, op: str) -> None:
    """A sum of bytes is a byte."""
    bits = x.dtype.itemsize * 8
    values = [int(value) for value in x.reshape(-1)]
    limits = np.iinfo(x.dtype)
    exact = {
        "Sum": sum(values),
        "Prod": int(np.prod(np.array(values, object))) if values else 1,
        "Max": max(values, default=int(limits.min)),
        "Min": min(values, default=int(limits.max)),
    }[op]
    assert int(check_shapes(op, x, np.arange(x.ndim))) % 2**bits == exact % 2**bits


def test_a_mean_of_integers_is_cut_but_does_not_overflow() -> None:
    """It adds in 64 bits, and of nothing it is zero."""
    assert run("Mean", np.array([100, 100, 100], np.int8), np.array([0])) == 100
    assert run("Mean", np.array([1, 2, 4, -9, -5], np.int32), np.array([0])) == -1
    assert run("Mean", np.zeros((0,), np.int32), np.array([0])) == 0
    assert np.isnan(run("Mean", np.zeros((0,), np.float32), np.array([0])))


@pytest.mark.parametrize("op", ["Sum", "Mean"])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_long_sums_keep_their_digits(op: str, dtype: np.dtype[Any]) -> None:
    """Ten thousand ones are ten thousand, to the precision of the type."""
    expected = 1 if op == "Mean" else np.float64(10000).astype(dtype)
    assert run(op, np.ones(10000, dtype), np.array([0])) == expected


def test_reductions_of_nothing_are_neutral() -> None:
    """The extremes of no elements are infinite, their product is one."""
    nothing, axis = np.zeros((0, 2), np.float32), np.array([0])
    assert run("Max", nothing, axis).tolist() == [-np.inf] * 2
    assert run("Min", nothing, axis).tolist() == [np.inf] * 2
    assert run("Prod", nothing, axis).tolist() == [1, 1]
    assert run("All", np.zeros(0, np.bool_), axis)
    assert not run("Any", np.zeros(0, np.bool_), axis)


def test_nan_is_the_extreme() -> None:
    """Max and Min of elements with a NaN are NaN."""
    x = np.array([[1, np.nan], [2, np.inf]], np.float32)
    np.testing.assert_array_equal(run("Max", x, np.array([1])), [np.nan, np.inf])
    np.testing.assert_array_equal(run("Min", x, np.array([0])), [1, np.nan])


@given(arrays([np.dtype(np.bool_)], 0, 1), st.data())
def test_all_and_any(x: Array, data: st.DataObject) -> None:
    """De Morgan: all(x) == not any(not x)."""
    axes = np.array(data.draw(axes_of(x.ndim)), np.int64)
    np.testing.assert_array_equal(check_shapes("All", x, axes), ~np.asarray(check_shapes("Any", ~x, axes)))


@given(arrays(NUMBERS))
def test_the_norm_is_the_root_of_the_sum_of_squares(x: Array) -> None:
    """Complex numbers count by their absolute values; L2Loss is half the square."""
    norm = np.asarray(check_shapes("EuclideanNorm", x, np.arange(x.ndim)))
    if x.dtype in FLOAT_TYPES or x.dtype in COMPLEX_TYPES:
        exact = np.linalg.norm(x.reshape(-1).astype(np.complex128))
        rtol = tolerance(x.dtype) * 10
        np.testing.assert_allclose(complex(norm), exact, rtol=rtol, atol=rtol)
        if x.dtype in FLOAT_TYPES:
            np.testing.assert_allclose(float(check_shapes("L2Loss", x)), exact**2 / 2, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "All"])
def test_bad_axes_are_reported(op: str) -> None:
    """Axes out of range or named twice are errors."""
    x: Array = np.ones((2, 3), np.bool_ if op == "All" else np.float32)
    with pytest.raises(InvalidArgumentError, match=r"Invalid reduction dimension \(2 for input with 2 dimension"):
        run(op, x, np.array([2]))
    with pytest.raises(InvalidArgumentError, match="Axes contains duplicate dimension: 0"):
        run(op, x, np.array([0, -2]))
    with pytest.raises(InvalidArgumentError, match="Invalid reduction dimension 2 for input with 2 dimensions"):
        shapes(op, (2, 3), np.array([2]))


def test_what_is_inferred_from_less() -> None:
    """Without the axes the rank is known only under keep_dims; without the rank it is unknown."""
    assert shapes("Sum", (2, 3), (1,)) == [None]
    assert shapes("Sum", (2, 3), (1,), keep_dims=True) == [(None, None)]
    assert shapes("Sum", None, np.array([0])) == [None]
    assert shapes("Sum", (None, 3), np.array([1])) == [(None,)]
    assert shapes("ArgMax", (2, 3, 4), ()) == [(None, None)]


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@given(x=arrays([*FLOAT_TYPES, *INTEGER_TYPES, np.dtype(np.bool_)]), data=st.data())
def test_the_first_extreme_is_found(op: str, x: Array, data: st.DataObject) -> None:
    """The index is numpy's along any axis, in either index type."""
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1)) if x.ndim and x.size else None
    if axis is None:
        return
    index_type = data.draw(st.sampled_from([DataType.INT32, DataType.INT64]))
    actual = check_shapes(op, x, np.int32(axis), output_type=index_type)
    reference = np.argmax if op == "ArgMax" else np.argmin
    np.testing.assert_array_equal(actual, reference(x.astype(np.float64), axis))


def test_arg_extremes_pass_over_nan() -> None:
    """The index of a NaN is given only if all elements are NaN."""
    x = np.array([[np.nan, 3, 7], [np.nan] * 3], np.float32)
    assert run("ArgMax", x, np.int32(1)).tolist() == [2, 0]
    assert run("ArgMin", x, np.int32(1)).tolist() == [1, 0]


def test_arg_extremes_need_something_to_choose_from() -> None:
    """The axis must exist and have elements."""
    with pytest.raises(InvalidArgumentError, match=r"Reduction axis 1 is empty in shape \[2,0\]"):
        run("ArgMax", np.zeros((2, 0)), np.int32(1))
    with pytest.raises(InvalidArgumentError, match=r"Expected dimension in the range \[-2, 2\), but got 2"):
        run("ArgMax", np.zeros((2, 2)), np.int32(2))
    assert run("ArgMax", np.zeros((0, 2)), np.int32(1)).shape == (0,)


def test_scalars_reduce_to_themselves() -> None:
    """A reduction over no axes changes nothing."""
    nothing = np.zeros(0, np.int32)
    for dtype in NUMBERS:
        assert run("Sum", filled(dtype, (), 3)[()], nothing) == filled(dtype, (), 3)[()]


def test_arg_extremes_take_one_axis_of_seven() -> None:
    """The axis is a scalar, and TensorFlow's kernels know seven axes."""
    with pytest.raises(InvalidArgumentError, match=r"dim must be a scalar, but received tensor of shape: \[1\]"):
        run("ArgMax", np.zeros((2, 2)), np.array([1], np.int32))
    with pytest.raises(InvalidArgumentError, match="only support up to 7 input dimensions, but got 8"):
        run("ArgMin", np.zeros((1,) * 8), np.int32(1))


def test_axes_come_as_a_vector_or_a_scalar() -> None:
    """Other ranks are refused before the run; a scan keeps its shape for any axis."""
    with pytest.raises(InvalidArgumentError, match="Shape must be at most rank 1 but is rank 2"):
        shapes("Sum", (2, 3), (1, 1))
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal, but are 3 and 2"):
        shapes("HistogramFixedWidth", (9,), (3,), ())
    assert shapes("Cumsum", (), ()) == [()]
