"""Uniform quantisation: integer = float / scale + zero point, with one scale, or one for each slice of an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel


def check_pair(scales: Array, zeros: Array, what: str) -> None:
    """InvalidArgumentError unless there is a zero point for each scale."""
    same = scales.shape == zeros.shape
    texts = f"{shape_text(scales.shape)} and {shape_text(zeros.shape)}"
    require(same, f"{what}_scales and {what}_zero_points must have the same shape, not {texts}")


def along(values: Array, x: Array, axis: int, what: str) -> Array:
    """Scales or zero points, shaped to broadcast against `x`."""
    if axis < 0:
        require(values.ndim == 0, f"quantization_axis is -1, {what} must be scalar, not {shape_text(values.shape)}")
        return values
    require(axis < x.ndim, f"quantization_axis must be less than input rank {x.ndim}, but is {axis}")
    require(
        values.shape == (x.shape[axis],),
        f"{what} must have the size of axis {axis}, {x.shape[axis]}, not {shape_text(values.shape)}",
    )
    return values.reshape((-1,) + (1,) * (x.ndim - axis - 1))


def _rounded(x: Array, zero: Array, low: int, high: int, dtype: np.dtype[Any]) -> Array:
    """The nearest integers, ties upwards, counted from the zero point and within the limits."""
    whole = np.floor(x + x.dtype.type(0.5)).astype(np.float64) + zero
    return np.asarray(np.clip(whole, low, high), dtype)


def check_scales(scales: Array) -> None:
    """InvalidArgumentError unless all scales are positive and finite."""
    require(bool((scales > 0).all() and np.isfinite(scales).all()), "All scales elements must be positive.")


@kernel("UniformQuantize")
def uniform_quantize(node: Construction) -> Kernel:
    """The integers for floats."""
    attrs, dtype = node.attrs, numpy_dtype(node.output_types[0])
    axis, low, high = (int(attrs[f"quantization_{name}"]) for name in ("axis", "min_val", "max_val"))

    def run(x: Array, scales: Array, zeros: Array) -> Array:
        check_scales(scales)
        scale, zero = along(scales, x, axis, "scales"), along(zeros, x, axis, "zero_points")
        return _rounded(x * (np.float32(1) / scale), zero, low, high, dtype)

    return run


@kernel("UniformDequantize")
def uniform_dequantize(node: Construction) -> Kernel:
    """The floats that integers stand for."""
    axis = int(node.attrs["quantization_axis"])

    def run(x: Array, scales: Array, zeros: Array) -> Array:
        check_scales(scales)
        scale, zero = along(scales, x, axis, "scales"), along(zeros, x, axis, "zero_points")
        return np.asarray((x.astype(np.int32) - zero).astype(np.float32) * scale)

    return run


@kernel("UniformRequantize")
def uniform_requantize(node: Construction) -> Kernel:
    """The integers of other scales and zero points for the same numbers."""
    attrs, dtype = node.attrs, numpy_dtype(node.output_types[0])
    axis_in, axis_out = int(attrs["input_quantization_axis"]), int(attrs["output_quantization_axis"])
    low, high = int(attrs["output_quantization_min_val"]), int(attrs["output_quantization_max_val"])

    def run(x: Array, scales: Array, zeros: Array, new_scales: Array, new_zeros: Array) -> Array:
        check_scales(scales)
        check_scales(new_scales)
        old = along(scales, x, axis_in, "input_scales"), along(zeros, x, axis_in, "input_zero_points")
        new = along(new_scales, x, axis_out, "output_scales"), along(new_zeros, x, axis_out, "output_zero_points")
        ratio = old[0].astype(np.float64) / new[0].astype(np.float64)
        return _rounded((x.astype(np.int64) - old[1]) * ratio, new[1], low, high, dtype)

    return run
