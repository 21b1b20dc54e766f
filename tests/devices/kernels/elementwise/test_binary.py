"""Elementwise ops on two tensors broadcast like numpy, wrap like C and fail in TensorFlow's words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import FailedPreconditionError, InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import (
    COMPLEX_TYPES,
    FLOAT_TYPES,
    INTEGER_TYPES,
    NUMBERS,
    filled,
    pairs,
    tolerance,
)
from tests.devices.kernels.harness import check_shapes, run, shapes

REALS = [*FLOAT_TYPES, *INTEGER_TYPES]
ARITHMETIC = {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply}
ORDER = {
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}
GUARDED = {"DivNoNan": 1, "MulNoNan": 1, "Xdivy": 0, "Xlogy": 0, "Xlog1py": 0}


@pytest.mark.parametrize("op", [*ARITHMETIC, *ORDER])
@given(operands=pairs(REALS))
def test_real_operands_broadcast(op: str, operands: tuple[Array, Array]) -> None:
    """Value and shape are numpy's, for every real type."""
    with np.errstate(all="ignore"):
        expected = (ARITHMETIC | ORDER)[op](*operands)
    np.testing.assert_array_equal(np.asarray(check_shapes(op, *operands)), expected)


@pytest.mark.parametrize("op", [*ARITHMETIC, "SquaredDifference", "Equal", "NotEqual", "RealDiv"])
@given(operands=pairs([*FLOAT_TYPES, *COMPLEX_TYPES], 0.5, 3))
def test_scalars_give_what_arrays_give(op: str, operands: tuple[Array, Array]) -> None:
    """The fast path of numpy scalars computes the same as that of arrays."""
    x, y = np.broadcast_arrays(*operands)
    whole = np.asarray(check_shapes(op, *operands))
    for index in list(np.ndindex(x.shape))[:3]:
        np.testing.assert_allclose(
            complex(run(op, x[index], y[index])), complex(whole[index]), rtol=tolerance(x.dtype), atol=1e-6
        )


@given(pairs(NUMBERS))
def test_addition_commutes_and_subtraction_undoes_it_for_integers(operands: tuple[Array, Array]) -> None:
    """x + y == y + x; (x + y) - y == x where no rounding interferes."""
    x, y = operands
    total = run("AddV2", x, y)
    np.testing.assert_array_equal(total, run("AddV2", y, x))
    if x.dtype.kind in "iu" and x.dtype.name != "bfloat16":
        np.testing.assert_array_equal(run("Sub", total, y), np.broadcast_to(x, np.shape(total)))


@pytest.mark.parametrize("op", [*ARITHMETIC, *ORDER, "Equal", "Pow", "FloorDiv", "Xlogy", "LeftShift"])
def test_shapes_that_clash_are_reported(op: str) -> None:
    """By the kernel and by the shape function."""
    a, b = np.ones((2, 3), np.int32), np.ones(2, np.int32)
    if op == "Xlogy":
        a, b = a.astype(np.float32), b.astype(np.float32)
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs\. \[2\]"):
        run(op, a, b)
    with pytest.raises(InvalidArgumentError, match="Dimensions must be equal"):
        shapes(op, (2, 3), (2,))


@pytest.mark.parametrize("op", GUARDED)
@pytest.mark.parametrize("dtype", [*FLOAT_TYPES, *COMPLEX_TYPES])
def test_a_guarding_zero_wins(op: str, dtype: np.dtype[Any]) -> None:
    """The result is zero even if the other operand is NaN or infinite."""
    zero, wild = np.zeros(3, dtype), np.array([0, np.inf, np.nan]).astype(dtype)
    operands = (wild, zero) if GUARDED[op] else (zero, wild)
    np.testing.assert_array_equal(check_shapes(op, *operands), np.zeros(3))


@given(st.integers(-5, 5), st.integers(0, 40))
def test_integer_powers_wrap(base: int, exponent: int) -> None:
    """The result is that of repeated multiplication."""
    exact = (base**exponent + 2**31) % 2**32 - 2**31
    assert int(run("Pow", np.int32(base), np.int32(exponent))) == exact


def test_integers_have_no_negative_powers() -> None:
    """Even 1 to the power of -1 is refused."""
    with pytest.raises(InvalidArgumentError, match="Integers to negative integer powers are not allowed"):
        run("Pow", np.array([1, 2], np.int64), np.array([2, -1], np.int64))
    assert run("Pow", np.zeros((0,), np.int32), np.array([-1], np.int32)).shape == (0,)
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        run("Pow", np.ones(2, np.int32), np.full(3, -1, np.int32))


def test_a_known_zero_tells_nothing_of_an_unknown_size() -> None:
    """The result's size stays unknown, as in TensorFlow; a known size above one is the result's."""
    assert shapes("Add", (0,), (None,)) == [(None,)]
    assert shapes("Add", (2,), (None,)) == [(2,)]


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_shifts_are_clipped_to_the_width(dtype: np.dtype[Any]) -> None:
    """Shifting by a negative number does nothing, by too much the same as by width - 1."""
    width = dtype.itemsize * 8
    x, far = np.array([1, 1], dtype), np.array([width - 1, min(width + 5, 127)], dtype)
    left = check_shapes("LeftShift", x, far)
    assert left[0] == left[1] != 0
    if dtype.kind == "i":
        np.testing.assert_array_equal(run("RightShift", np.array([-8, -8], dtype), far), [-1, -1])
        assert run("LeftShift", dtype.type(3), dtype.type(-1)) == 3


@given(pairs([np.dtype(np.bool_)], 0, 1), st.sampled_from(["LogicalAnd", "LogicalOr"]))
def test_logic(operands: tuple[Array, Array], op: str) -> None:
    """Truth tables, broadcast."""
    reference = np.logical_and if op == "LogicalAnd" else np.logical_or
    np.testing.assert_array_equal(check_shapes(op, *operands), reference(*operands))


def test_strings_are_joined_and_compared() -> None:
    """Element by element, broadcasting."""
    words, letter = np.array([b"a", b"b"], object), np.array(b"a", object)
    assert check_shapes("Add", words, letter).tolist() == [b"aa", b"ba"]
    assert run("Add", letter, letter).item() == b"aa"
    assert check_shapes("Equal", words, letter).tolist() == [True, False]
    assert run("NotEqual", letter, letter).dtype == np.bool_


@pytest.mark.parametrize(("op", "answer"), [("Equal", False), ("NotEqual", True)])
def test_tensors_that_do_not_broadcast_may_merely_be_unequal(op: str, answer: bool) -> None:
    """With incompatible_shape_error false; the answer is then a scalar."""
    a, b = np.zeros(3, np.int32), np.zeros(2, np.int32)
    assert run(op, a, b, incompatible_shape_error=False) == answer
    assert shapes(op, (3,), (2,), incompatible_shape_error=False) == [()]
    assert shapes(op, (3,), (None,), incompatible_shape_error=False) == [None]
    assert shapes(op, (3,), (1,), incompatible_shape_error=False) == [(3,)]


def test_approximately_equal() -> None:
    """Closer than the tolerance, and of one shape."""
    x = np.array([1, 1.05, 2], np.float32)
    assert check_shapes("ApproximateEqual", x, np.ones(3, np.float32), tolerance=0.1).tolist() == [True, True, False]
    with pytest.raises(InvalidArgumentError, match="must be of the same shape"):
        run("ApproximateEqual", x, np.ones(2, np.float32))


@given(st.integers(1, 20), st.sampled_from(NUMBERS), st.integers(0, 99))
def test_add_n_is_a_sum(count: int, dtype: np.dtype[Any], seed: int) -> None:
    """Of any number of tensors of any type, up to rounding."""
    terms = [filled(dtype, (2, 3), seed + i) for i in range(count)]
    exact = sum((term.astype(np.complex128) for term in terms), np.zeros((2, 3), np.complex128))
    rtol = tolerance(dtype)
    if dtype in INTEGER_TYPES:
        exact = exact.real.astype(np.int64).astype(dtype)
    actual = np.asarray(check_shapes("AddN", terms)).astype(np.complex128)
    np.testing.assert_allclose(actual, exact, rtol=rtol * count, atol=rtol * count)


def test_accumulating_is_adding() -> None:
    """AccumulateNV2 adds as AddN does; its shape is the one that it declares."""
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    assert check_shapes("AccumulateNV2", [x, y], shape=(2,)).tolist() == [4, 6]


def test_add_n_wants_one_shape() -> None:
    """It does not broadcast; the shape function merges what is known."""
    with pytest.raises(InvalidArgumentError, match=r"same size and shape.*Input 0: \[3\] != input 1: \[1\]"):
        run("AddN", [np.zeros(3), np.zeros(1)])
    assert shapes("AddN", [(None, 3), None, (2, None)]) == [(2, 3)]
    with pytest.raises(InvalidArgumentError, match="From merging shape 0 with other shapes"):
        shapes("AddN", [(2,), (3,)])


@given(st.integers(0, 99))
def test_a_cross_product_is_perpendicular(seed: int) -> None:
    """Its product with either factor is zero."""
    a, b = filled(np.dtype(np.float64), (4, 3), seed), filled(np.dtype(np.float64), (4, 3), seed + 1)
    product = check_shapes("Cross", a, b)
    np.testing.assert_allclose([(product * a).sum(-1), (product * b).sum(-1)], 0, atol=1e-12)


def test_cross_wants_vectors_of_three() -> None:
    """Both operands must have one shape, whose last size is 3."""
    with pytest.raises(InvalidArgumentError, match="must be of same shape"):
        run("Cross", np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(FailedPreconditionError, match="3-element vectors"):
        run("Cross", np.zeros((2, 4)), np.zeros((2, 4)))


@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3))
def test_summing_over_gradient_axes_restores_each_shape(drawn: hnp.BroadcastableShapes) -> None:
    """What broadcasting repeated, the listed axes sum away: the gradient of a sum gets its operand's size."""
    s0, s1 = drawn.input_shapes
    axes = run("BroadcastGradientArgs", np.array(s0, np.int32), np.array(s1, np.int32))
    for shape, reduced in zip((s0, s1), axes, strict=True):
        gradient = np.ones(drawn.result_shape).sum(tuple(reduced.tolist()))
        assert gradient.size == math.prod(shape)


def test_gradient_axes_of_shapes_that_clash() -> None:
    """Shapes that do not broadcast are an error."""
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2\] vs\. \[3\]"):
        run("BroadcastGradientArgs", np.array([2]), np.array([3]))


@pytest.mark.parametrize("op", ["Maximum", "Minimum"])
@given(x=st.floats(width=32), y=st.floats(width=32))
def test_extremes_of_two_numbers_are_those_of_arrays(op: str, x: float, y: float) -> None:
    """Not a number wins; of two zeros the first is taken, as TensorFlow does."""
    alone = run(op, np.float32(x), np.float32(y))
    np.testing.assert_array_equal(alone, run(op, np.full(1, x, np.float32), np.full(1, y, np.float32))[0])
    if x == y:
        assert np.signbit(alone) == np.signbit(np.float32(x))
