"""Arithmetic on integers that stand for the numbers of a range; each tensor comes with the ends of its range.

Products and sums of bytes are 32-bit integers of a range that follows from those of the operands.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType
from ....graph.ops.nn.windows import window_attrs
from ..checks import require
from ..nn.conv_arithmetic import convolve
from ..nn.sliding import sweep
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from .fused_products import conv_2d
from .ranges import Range, Ranged, as_integers, moved, range_of, range_of_products, range_of_sums, zero_of

_INT32 = np.dtype(np.int32)


def _centred(x: Array, bounds: Range) -> Array:
    """The integers with zero for zero."""
    return x.astype(np.int32) - np.array(zero_of(bounds, x.dtype)).astype(np.int32)


def _exactly(product: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """A product of integers of at most 17 bits through float64, in which sums of 2**19 terms are exact."""
    return product(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)


def _check_ranges(**ranges: Range) -> None:
    for name, bounds in ranges.items():
        require(bool(bounds.high > bounds.low), f"max_{name} must be larger than min_{name}.")


def _check_broadcast(x: Array, y: Array) -> None:
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise InvalidArgumentError(f"Incompatible shapes: {shape_text(x.shape)} vs. {shape_text(y.shape)}") from None


@kernel("QuantizedMatMul")
def quantized_mat_mul(node: Construction) -> Kernel:
    """The product of two matrices, either of which may be transposed."""
    turn_a, turn_b = bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])

    def run(a: Array, b: Array, low_a: Array, high_a: Array, low_b: Array, high_b: Array) -> Ranged:
        a_range, b_range = range_of(low_a, high_a), range_of(low_b, high_b)
        require(a.ndim == 2, f"In[0] is not a matrix: {shape_text(a.shape)}")
        require(b.ndim == 2, f"In[1] is not a matrix: {shape_text(b.shape)}")
        left, right = (a.T if turn_a else a), (b.T if turn_b else b)
        _check_ranges(a=a_range, b=b_range)
        if left.shape[1] != right.shape[0]:
            raise InvalidArgumentError(
                f"Matrix size-compatible: In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}"
            )
        output_shape((len(left), right.shape[1]), np.dtype(np.int32))
        result = _exactly(np.matmul, _centred(left, a_range), _centred(right, b_range))
        return result, *range_of_products(a_range, a.dtype, b_range, b.dtype, _INT32)

    return run


@kernel("QuantizedConv2D")
def quantized_conv_2d(node: Construction) -> Kernel:
    """A convolution of images [batch, rows, columns, channels]; cells outside stand for zero."""
    if node.input_types[1] is DataType.QINT8:
        return conv_2d(node)
    attrs = window_attrs(node.attrs, "NHWC")
    require(
        attrs.raw_strides[0] == attrs.raw_strides[3] == 1,
        "Current implementation does not yet support strides in the batch and depth dimensions.",
    )

    def run(x: Array, w: Array, low_x: Array, high_x: Array, low_w: Array, high_w: Array) -> Ranged:
        require(x.ndim == 4, f"input must be rank 4 but is rank {x.ndim}")
        require(w.ndim == 4, f"filter must be rank 4 but is rank {w.ndim}")
        require(x.shape[3] == w.shape[2], f"input and filter must have the same depth: {x.shape[3]} vs {w.shape[2]}")
        require(w.size > 0, "filter patch must contain at least one element")
        x_range, w_range = range_of(low_x, high_x), range_of(low_w, high_w)
        walked = sweep(attrs, x.shape[1:3], w.shape[:2])
        result = _exactly(lambda a, b: convolve(a, b, walked), _centred(x, x_range), _centred(w, w_range))
        return result, *range_of_products(x_range, x.dtype, w_range, w.dtype, _INT32)

    return run


@kernel("QuantizedMul")
def quantized_mul(node: Construction) -> Kernel:
    """The product, element by element; shapes broadcast."""

    def run(x: Array, y: Array, low_x: Array, high_x: Array, low_y: Array, high_y: Array) -> Ranged:
        x_range, y_range = range_of(low_x, high_x), range_of(low_y, high_y)
        _check_broadcast(x, y)
        _check_ranges(x=x_range, y=y_range)
        result = _centred(x, x_range) * _centred(y, y_range)
        return np.asarray(result), *range_of_products(x_range, x.dtype, y_range, y.dtype, _INT32)

    return run


def _in_even_steps(x: Array, old: Range, new: Range) -> Array:
    """As `moved` to 32-bit integers, with one whole number as the step between all neighbours."""
    zero, one = moved(np.array([0, 1], x.dtype), old, new, _INT32)
    return np.asarray(x.astype(np.int32) * (one - zero) + zero)


@kernel("QuantizedAdd", "QuantizedBiasAdd")
def quantized_add(node: Construction) -> Kernel:
    """The sum, element by element; shapes broadcast, and a bias is added along the last axis."""
    is_bias = node.op == "QuantizedBiasAdd"

    def run(x: Array, y: Array, low_x: Array, high_x: Array, low_y: Array, high_y: Array) -> Ranged:
        if is_bias:
            require(x.ndim >= 2, f"Input tensor must be at least 2D: {shape_text(x.shape)}")
            require(y.ndim == 1, f"Biases must be 1D: {shape_text(y.shape)}")
            require(
                x.shape[-1] == y.shape[0],
                "Must provide as many biases as the last dimension of the input tensor: "
                f"{shape_text(y.shape)} vs. {shape_text(x.shape)}",
            )
        else:
            _check_broadcast(x, y)
        x_range, y_range = range_of(low_x, high_x), range_of(low_y, high_y)
        total = range_of_sums(x_range, y_range, 17 if is_bias else 14)
        if is_bias:
            return np.asarray(moved(x, x_range, total, _INT32) + moved(y, y_range, total, _INT32)), *total
        return np.asarray(_in_even_steps(x, x_range, total) + _in_even_steps(y, y_range, total)), *total

    return run


@kernel("QuantizedRelu", "QuantizedRelu6")
def quantized_relu(node: Construction) -> Kernel:
    """What stands for negative numbers becomes what stands for zero; for more than six, what stands for six."""
    has_top = node.op == "QuantizedRelu6"

    def run(x: Array, low: Array, high: Array) -> Ranged:
        bounds = range_of(low, high)
        result = np.maximum(x, as_integers(np.zeros(()), bounds, x.dtype))
        if has_top:
            result = np.minimum(result, as_integers(np.full((), 6.0), bounds, x.dtype))
        return np.asarray(result), *bounds

    return run
