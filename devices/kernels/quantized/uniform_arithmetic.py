"""Arithmetic on uniformly quantised tensors: products and sums of integers, rescaled to the result's scale.

    (a - zero_a) . (b - zero_b) * scale_a * scale_b / scale_out + zero_out, rounded, ties upwards

The right operand and the result may have a scale for each column.
"""

from __future__ import annotations

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..elementwise.broadcasting import broadcasting
from ..registry import Construction, Kernel, kernel
from .uniform import along, check_pair, check_scales


def rounded(x: Array) -> Array:
    """The nearest whole numbers, ties upwards."""
    return np.asarray(np.floor(x + 0.5))


def _check_matrices(a: Array, b: Array) -> None:
    require(a.ndim == 2 and b.ndim == 2, f"lhs and rhs must be matrices: {shape_text(a.shape)}, {shape_text(b.shape)}")
    require(
        a.shape[1] == b.shape[0],
        f"lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs.dim_size(1): {a.shape[1]} and "
        f"rhs.dim_size(0): {b.shape[0]}",
    )


def _check_columns(*axes: int) -> None:
    for name, axis in zip(("rhs", "output"), axes, strict=False):
        require(
            axis in (-1, 1),
            f"{name}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor).",
        )


@kernel("UniformQuantizedDot")
def dot(node: Construction) -> Kernel:
    """The product of two matrices."""
    attrs, dtype = node.attrs, numpy_dtype(node.output_types[0])
    axis_b, axis_out = int(attrs["rhs_quantization_axis"]), int(attrs["output_quantization_axis"])
    low, high = int(attrs["output_quantization_min_val"]), int(attrs["output_quantization_max_val"])
    require(attrs["lhs_quantization_axis"] == -1, "lhs_quantization_axis Attr must be -1 (per-tensor).")
    _check_columns(axis_b, axis_out)

    def run(
        a: Array, b: Array, scale_a: Array, zero_a: Array, scales_b: Array, zeros_b: Array, scales: Array, zeros: Array
    ) -> Array:
        _check_matrices(a, b)
        for each in (scale_a, scales_b, scales):
            check_scales(each)
        for each, zero, what in ((scale_a, zero_a, "lhs"), (scales_b, zeros_b, "rhs"), (scales, zeros, "output")):
            check_pair(each, zero, what)
        require(
            scales_b.ndim == 1 or scales.ndim == 0,
            "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs scales and "
            f"zero_points of shape {shape_text(scales_b.shape)} but given output scales and zero_points of shape "
            f"{shape_text(scales.shape)}",
        )
        left = (a.astype(np.int64) - along(zero_a, a, -1, "lhs_zero_points")).astype(np.float64)
        right = (b.astype(np.int64) - along(zeros_b, b, axis_b, "rhs_zero_points")).astype(np.float64)
        # Sums of products of 9 bits are exact in float64, and BLAS multiplies only floats.
        total = left @ right
        ratio = scale_a.astype(np.float64) * along(scales_b, b, axis_b, "rhs_scales") / scales.astype(np.float64)
        whole = rounded(total * ratio) + along(zeros, total, axis_out, "output_zero_points")
        return np.asarray(np.clip(whole, low, high), dtype)

    return run


@kernel("UniformQuantizedDotHybrid")
def dot_hybrid(node: Construction) -> Kernel:
    """The product of a matrix of floats with one of integers; each row of the first one becomes bytes before."""
    axis = int(node.attrs["rhs_quantization_axis"])
    _check_columns(axis)

    def run(a: Array, b: Array, scales: Array, zeros: Array) -> Array:
        _check_matrices(a, b)
        check_scales(scales)
        scale, zero = along(scales, b, axis, "rhs_scales"), along(zeros, b, axis, "rhs_zero_points")
        whole, steps = rows_as_bytes(a)
        return np.asarray((whole @ (b.astype(np.float64) - zero)) * steps * scale, np.float32)

    return run


def rows_as_bytes(x: Array) -> tuple[Array, Array]:
    """The numbers of each row as whole steps, of which 255 reach from its least number, or zero, to its greatest."""
    low, high = (np.float32(0), np.float32(0)) if not x.shape[1] else (x.min(1, keepdims=True), x.max(1, keepdims=True))
    reach = (np.maximum(high, 0) - np.minimum(low, 0)) / np.float32(255)
    steps = np.where(reach == 0, np.float32(1), reach).astype(np.float64)
    first = np.rint(-128 - np.minimum(low, 0) / steps)
    return np.clip(np.rint(x / steps) + first, -128, 127) - first, steps


@kernel("UniformQuantizedAdd")
def add(node: Construction) -> Kernel:
    """The sum of two tensors, each brought to the result's scale first; shapes broadcast."""
    attrs, dtype = node.attrs, numpy_dtype(node.output_types[0])
    axes = [int(attrs[f"{name}_quantization_axis"]) for name in ("lhs", "rhs", "output")]
    low, high = int(attrs["output_quantization_min_val"]), int(attrs["output_quantization_max_val"])
    total = broadcasting(np.add)

    def run(
        a: Array,
        b: Array,
        scale_a: Array,
        zero_a: Array,
        scale_b: Array,
        zero_b: Array,
        scales: Array,
        zeros: Array,
    ) -> Array:
        for each in (scale_a, scale_b, scales):
            check_scales(each)
        for each, zero, what in ((scale_a, zero_a, "lhs"), (scale_b, zero_b, "rhs"), (scales, zeros, "output")):
            check_pair(each, zero, what)
        parts = [
            _rescaled(x, along(s, x, axis, "scales"), along(z, x, axis, "zero_points"), _column(scales, x, axes[2]))
            for x, s, z, axis in ((a, scale_a, zero_a, axes[0]), (b, scale_b, zero_b, axes[1]))
        ]
        whole = total(*parts)
        return np.asarray(np.clip(whole + along(zeros, whole, axes[2], "output_zero_points"), low, high), dtype)

    return run


def _column(scales: Array, x: Array, axis: int) -> Array:
    """The result's scales for one operand: one that broadcasts over the axis of the scales has the last axis alone."""
    return scales if axis < 0 else scales.reshape((-1,) + (1,) * max(x.ndim - axis - 1, 0))


def _rescaled(x: Array, scale: Array, zero: Array, new: Array) -> Array:
    """Whole numbers of the new scale, as float64, counted from zero."""
    ratio = scale.astype(np.float64) / new.astype(np.float64)
    return rounded((x.astype(np.int64) - zero) * ratio)


@kernel("UniformQuantizedClipByValue")
def clip_by_value(node: Construction) -> Kernel:
    """The integers within limits, which are integers of the same scale."""
    axis = int(node.attrs["quantization_axis"])

    def run(x: Array, low: Array, high: Array, scales: Array, zeros: Array) -> Array:
        require(
            scales.shape == zeros.shape,
            f"scales and zero_points shape must be same, but given scales shape {shape_text(scales.shape)} and "
            f"zero_points shape {shape_text(zeros.shape)}",
        )
        for name, limit in (("min", low), ("max", high)):
            require(
                limit.shape == scales.shape,
                f"Input {name} shape must be same as scales/zero_points. Given {name} of shape "
                f"{shape_text(limit.shape)} and scales/zero_points of shape {shape_text(scales.shape)}",
            )
        check_scales(scales)
        least, most = along(low, x, axis, "min"), along(high, x, axis, "max")
        return np.asarray(np.minimum(np.maximum(x, least), most))

    return run
