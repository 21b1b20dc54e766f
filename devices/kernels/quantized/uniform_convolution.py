"""Convolutions of uniformly quantised tensors, as products (`uniform_arithmetic.py`); cells outside stand for zero."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ....graph.ops.quantized.uniform_convolution import Layout
from ..checks import require
from ..registry import Construction, Kernel, kernel
from ..xla.products import XlaWindow, spread
from .uniform import along, check_pair, check_scales
from .uniform_arithmetic import rounded, rows_as_bytes

Finish = Callable[[Array], Array]
"""takes and returns an array [batch, spatial..., features]"""


def _convolve(node: Construction, x: Array, w: Array, finish: Finish) -> Array:
    """The convolution of arrays in the axes of the attrs; whole numbers in float64 stay exact."""
    require(
        x.ndim == w.ndim and x.ndim >= 3,
        f"lhs and rhs must have one rank of at least 3: {shape_text(x.shape)}, {shape_text(w.shape)}",
    )
    layout = Layout.of(node.attrs, x.ndim)
    numbers, groups = layout.numbers, int(node.attrs["feature_group_count"])
    batches = int(node.attrs["batch_group_count"])
    image = x.transpose((numbers.image[0], *numbers.image[2:], numbers.image[1]))
    window = w.transpose((*numbers.window[2:], numbers.window[1], numbers.window[0]))
    require(
        image.shape[-1] == window.shape[-2] * groups,
        f"Expected the input features {image.shape[-1]} to be {groups} times the filter's {window.shape[-2]}",
    )
    require(image.shape[0] % batches == 0 and window.shape[-1] % batches == 0, f"no {batches} groups of images")
    padding = np.array(layout.widths(image.shape[1:-1], window.shape[:-2]))
    image = spread(image, padding, np.array(layout.spreads))
    walk = XlaWindow(tuple(layout.strides), tuple(layout.dilations))
    parts = zip(np.split(image, batches), np.split(window, batches, axis=-1), strict=True)
    result = finish(np.concatenate([walk.convolve(*part) for part in parts], axis=-1))
    return result.transpose(np.argsort((numbers.result[0], *numbers.result[2:], numbers.result[1])))


@kernel("UniformQuantizedConvolution")
def convolution(node: Construction) -> Kernel:
    """The filter and the result may have a scale for each feature."""
    attrs, dtype = node.attrs, numpy_dtype(node.output_types[0])
    axis = int(attrs["rhs_quantization_axis"])
    low, high = int(attrs["output_quantization_min_val"]), int(attrs["output_quantization_max_val"])
    require(attrs["lhs_quantization_axis"] == -1, "lhs_quantization_axis Attr must be -1 (per-tensor).")

    def run(
        x: Array, w: Array, scale_x: Array, zero_x: Array, scales_w: Array, zeros_w: Array, scales: Array, zeros: Array
    ) -> Array:
        for each in (scale_x, scales_w, scales):
            check_scales(each)
        for each, zero, what in ((scale_x, zero_x, "lhs"), (scales_w, zeros_w, "rhs"), (scales, zeros, "output")):
            check_pair(each, zero, what)
        require(scales_w.ndim == 1 or scales.ndim == 0, "If rhs is per-tensor quantized, output must be also.")
        ratio = scale_x.astype(np.float64) * scales_w.astype(np.float64) / scales.astype(np.float64)
        image = (x.astype(np.int64) - along(zero_x, x, -1, "lhs_zero_points")).astype(np.float64)
        window = (w.astype(np.int64) - along(zeros_w, w, axis, "rhs_zero_points")).astype(np.float64)
        return _convolve(
            node, image, window, lambda total: np.clip(rounded(total * ratio) + zeros, low, high).astype(dtype)
        )

    return run


@kernel("UniformQuantizedConvolutionHybrid")
def convolution_hybrid(node: Construction) -> Kernel:
    """Of floats, which become bytes for each image by itself before, with integers."""
    axis = int(node.attrs["rhs_quantization_axis"])

    def run(x: Array, w: Array, scales: Array, zeros: Array) -> Array:
        check_scales(scales)
        check_pair(scales, zeros, "rhs")
        require(x.ndim == w.ndim, f"lhs and rhs must have the same rank, not {x.ndim} and {w.ndim}")
        window = (w.astype(np.int64) - along(zeros, w, axis, "rhs_zero_points")).astype(np.float64)
        batch = Layout.of(node.attrs, x.ndim).numbers.image[0]
        images = np.moveaxis(x, batch, 0)
        whole, steps = rows_as_bytes(images.reshape(len(images), prod(images.shape[1:])))
        image = np.moveaxis(whole.reshape(images.shape), 0, batch)
        units = steps.reshape(-1, *[1] * (x.ndim - 1)) * scales
        return _convolve(node, image, window, lambda total: (total * units).astype(np.float32))

    return run
