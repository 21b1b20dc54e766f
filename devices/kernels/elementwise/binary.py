"""Kernels of two tensors, element by element with broadcasting: arithmetic, comparison, logic, bits; AddN.

Integers wrap around; shapes that do not broadcast raise InvalidArgumentError. Python's operators are the kernels where
they compute the same as numpy's functions: they are several times faster on numpy scalars and equal on arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ....errors import FailedPreconditionError, InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..carried import sum_of
from ..checks import require, vector_of
from ..half_types import in_float32
from ..registry import Construction, Kernel, kernel, simple
from .broadcasting import broadcasting_binary
from .power import power_of_floats


def _greater(x: Any, y: Any) -> Any:
    """The greater operand, the first if they are equal; numpy scalars are compared, which is ten times as fast."""
    if x.__class__ is np.ndarray or y.__class__ is np.ndarray:
        return np.maximum(x, y)
    return x if x >= y or x != x else y  # NaN is the result, whichever operand has it


def _smaller(x: Any, y: Any) -> Any:
    """The smaller operand, as `_greater`."""
    if x.__class__ is np.ndarray or y.__class__ is np.ndarray:
        return np.minimum(x, y)
    return x if x <= y or x != x else y


_BARE: dict[str, Callable[[Any, Any], Any]] = {
    "AddV2": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Maximum": _greater,
    "Minimum": _smaller,
    "Atan2": np.arctan2,
    "NextAfter": np.nextafter,
    "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_,
    "BitwiseXor": operator.xor,
    "LogicalAnd": operator.and_,
    "LogicalOr": operator.or_,
    "Less": operator.lt,
    "LessEqual": operator.le,
    "Greater": operator.gt,
    "GreaterEqual": operator.ge,
}
_TESTS = {"Less", "LessEqual", "Greater", "GreaterEqual"}
for _op, _function in _BARE.items():
    simple(_op, broadcasting_binary(_function, is_test=_op in _TESTS))


@kernel("Add")
def add(node: Construction) -> Kernel:
    """x + y; strings are joined."""
    if node.output_types[0] is not DataType.STRING:
        return broadcasting_binary(operator.add)
    return broadcasting_binary(lambda x, y: np.asarray(x + y, object))


@kernel("Equal", "NotEqual")
def equal(node: Construction) -> Kernel:
    """x == y or x != y; with incompatible_shape_error false, tensors that do not broadcast are unequal."""
    compare = broadcasting_binary(operator.eq if node.op == "Equal" else operator.ne, is_test=True)
    if node.attrs["incompatible_shape_error"]:
        return compare
    otherwise = np.bool_(node.op == "NotEqual")

    def compare_any_shapes(x: Array, y: Array) -> Any:
        try:
            return compare(x, y)
        except InvalidArgumentError:
            return otherwise

    return compare_any_shapes


@kernel("ApproximateEqual")
def approximate_equal(node: Construction) -> Kernel:
    """|x - y| < tolerance, for two tensors of one shape."""
    tolerance = numpy_dtype(node.input_types[0]).type(node.attrs["tolerance"])

    def close(x: Array, y: Array) -> Any:
        if x.shape != y.shape:
            raise InvalidArgumentError(
                f"x and y must be of the same shape. x shape: {shape_text(x.shape)}. y shape: {shape_text(y.shape)}"
            )
        return np.abs(x - y) < tolerance

    return close


@kernel("SquaredDifference")
def squared_difference(node: Construction) -> Kernel:
    """(x - y) times its complex conjugate."""

    def of_reals(x: Array, y: Array) -> Any:
        difference = x - y
        difference *= difference
        return difference

    def of_complex(x: Array, y: Array) -> Any:
        difference = x - y
        return difference * np.conjugate(difference)

    return broadcasting_binary(of_complex if numpy_dtype(node.output_types[0]).kind == "c" else of_reals)


@kernel("Pow")
def power(node: Construction) -> Kernel:
    """x to the y; integers only to powers of at least zero."""
    dtype = numpy_dtype(node.output_types[0])
    if dtype in (np.float32, np.float64):
        return broadcasting_binary(power_of_floats)
    if dtype.kind not in "iu":
        return broadcasting_binary(np.power)

    def of_integers(x: Array, y: Array) -> Any:
        if np.any(y < 0) and np.broadcast(x, y).size:
            raise InvalidArgumentError("Integers to negative integer powers are not allowed")
        return np.power(x, y)

    return broadcasting_binary(of_integers)


_GUARDED: dict[str, Callable[[Any, Any], Any]] = {
    # A zero operand makes the result zero, even if the other is NaN or infinite.
    "DivNoNan": lambda x, y: np.where(y == 0, y.dtype.type(0), x / y),
    "MulNoNan": lambda x, y: np.where(y == 0, y.dtype.type(0), x * y),
    "Xdivy": lambda x, y: np.where(x == 0, x.dtype.type(0), x / y),
    "Xlogy": lambda x, y: np.where(x == 0, x.dtype.type(0), x * np.log(y)),
    "Xlog1py": lambda x, y: np.where(x == 0, x.dtype.type(0), x * np.log1p(y)),
}


@kernel(*_GUARDED)
def guarded(node: Construction) -> Kernel:
    """A product or quotient that is zero where its guarding operand is zero, even for NaN and infinity."""
    return broadcasting_binary(in_float32(_GUARDED[node.op], node.output_types[0]))


@kernel("LeftShift", "RightShift")
def shift(node: Construction) -> Kernel:
    """x shifted by y bits; y is first clipped to the range 0 to width - 1, where shifting is defined."""
    width = numpy_dtype(node.output_types[0]).itemsize * 8
    moved = operator.lshift if node.op == "LeftShift" else operator.rshift
    return broadcasting_binary(lambda x, y: moved(x, y.clip(0, width - 1)))


@kernel("AddN", "AccumulateNV2")
def add_n(node: Construction) -> Kernel:
    """The sum of tensors of one shape, in TensorFlow's order: n mod 8 (8 or 9 for 0 or 1), then eights."""
    count = len(node.input_types)
    if count == 1:
        return lambda x: x
    if node.output_types[0] is DataType.VARIANT:
        return _checked_sum(node, lambda inputs: reduce(lambda x, y: sum_of(x, y, DataType.VARIANT), inputs))
    first = {0: 8, 1: 9}.get(count % 8, count % 8)
    if count == first:
        return _sum_of_two(node) if count == 2 else _checked_sum(node, _sum)

    def total(inputs: tuple[Array, ...]) -> Any:
        result = _sum(inputs[:first])
        for start in range(first, count, 8):
            result = result + _sum(inputs[start : start + 8])
        return result

    return _checked_sum(node, total)


def _checked_sum(node: Construction, total: Callable[[tuple[Array, ...]], Any]) -> Kernel:
    def run(*inputs: Array) -> Any:
        shape = inputs[0].shape
        for value in inputs:
            if value.shape != shape:
                raise _unequal(node, inputs)
        return total(inputs)

    return run


def _sum_of_two(node: Construction) -> Kernel:
    """By far the most frequent one."""

    def run(x: Array, y: Array) -> Any:
        if x.shape != y.shape:
            raise _unequal(node, (x, y))
        return x + y

    return run


def _unequal(node: Construction, inputs: Sequence[Array]) -> InvalidArgumentError:
    shape = inputs[0].shape
    i, other = next((i, value.shape) for i, value in enumerate(inputs) if value.shape != shape)
    return InvalidArgumentError(
        f"Inputs to operation {node.name} of type {node.op} must have the same size and shape. "
        f" Input 0: {shape_text(shape)} != input {i}: {shape_text(other)}"
    )


def _sum(values: tuple[Array, ...]) -> Any:
    result: Any = values[0]
    for value in values[1:]:
        result = result + value
    return result


@kernel("Cross")
def cross(node: Construction) -> Kernel:
    """The vector product over the last axis, whose size is 3."""

    def product(a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise InvalidArgumentError(
                f"Both inputs must be of same shape: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
            )
        require(a.ndim >= 1, "Input must be at least 1D")
        if a.shape[-1] != 3:
            raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")
        result = np.empty(a.shape, a.dtype)
        for axis, following, last in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            one = a[..., following] * b[..., last]
            np.subtract(one, a[..., last] * b[..., following], result[..., axis])
        return result

    return product


def broadcast_gradient_axes(s0: list[int], s1: list[int]) -> tuple[list[int], list[int]]:
    """For operands of shapes `s0` and `s1` the axes of the result that each was repeated along.

    The operand's gradient is summed over these. Equal shapes need no sum; an axis that is 1 in both is listed for both.
    """
    if s0 == s1:
        return [], []
    rank = max(len(s0), len(s1))
    left, right = [1] * (rank - len(s0)) + s0, [1] * (rank - len(s1)) + s1
    for x, y in zip(left, right, strict=True):
        if not (x == y or 1 in (x, y)):
            raise InvalidArgumentError(f"Incompatible shapes: {shape_text(s0)} vs. {shape_text(s1)}")
    return [i for i in range(rank) if left[i] == 1], [i for i in range(rank) if right[i] == 1]


def _broadcast_gradient_args(s0: Array, s1: Array) -> tuple[Array, Array]:
    r0, r1 = broadcast_gradient_axes(vector_of(s0, "s0"), vector_of(s1, "s1"))
    return np.array(r0, s0.dtype), np.array(r1, s0.dtype)


simple("BroadcastGradientArgs", _broadcast_gradient_args)
