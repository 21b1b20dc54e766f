"""Convolution ops of two and three spatial axes, depthwise convolutions, and their gradients.

This module reads attrs, checks shapes and moves axes; `conv_arithmetic.py` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ....graph.ops.nn.windows import WindowAttrs, window_attrs
from ..arrays.padding import mirror_pad
from ..checks import require
from ..dense import of_dense
from ..half_types import in_float32
from ..images.resize import resize_bilinear
from ..linalg.half_products import PLAIN, arithmetic_of
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel
from . import conv_arithmetic, depthwise_arithmetic
from .sliding import Sweep, as_laid_out, channels_last, sweep

_NO_CHANNELS = "Number of channels in filter ({}) must match last dimension of input (0)"

SweepOf = Callable[[tuple[int, ...], tuple[int, ...]], Sweep]


def _conv_attrs(node: Construction, layout: str = "NHWC") -> tuple[WindowAttrs, SweepOf]:
    """The node's window attrs, and a memoised function from (spatial sizes, window) to the sweep."""
    attrs = window_attrs(node.attrs, layout)
    axes = [axis for axis in range(attrs.rank) if axis not in attrs.spatial_axes]
    for values, what in ((attrs.raw_strides, "strides"), (attrs.raw_dilations, "dilations")):
        if any(values[axis] != 1 for axis in axes):
            error = UnimplementedError if node.op.startswith("Conv2D") else InvalidArgumentError
            raise error(f"Current implementation does not yet support {what} in the batch and depth dimensions.")

    @lru_cache(maxsize=32)
    def sweep_of(sizes: tuple[int, ...], window: tuple[int, ...]) -> Sweep:
        return sweep(attrs, sizes, window)

    return attrs, sweep_of


def _check_operands(x: Array, w: Array, rank: int) -> None:
    """InvalidArgumentError for wrong ranks, or channels that groups do not divide; `x` is channels last."""
    if x.ndim != rank:
        raise InvalidArgumentError(f"convolution input must be {rank}-dimensional: {shape_text(x.shape)}")
    if w.ndim != rank:
        raise InvalidArgumentError(f"convolution filter must be {rank}-dimensional: {shape_text(w.shape)}")
    _check_groups(x.shape[-1], w.shape)


def _check_groups(channels: int, window_shape: Sequence[int]) -> None:
    depth, features = window_shape[-2:]
    if depth <= 0:
        raise InvalidArgumentError(f"filter depth must be stricly positive, got {depth}")
    if channels % depth:
        raise InvalidArgumentError(f"input depth must be evenly divisible by filter depth: {channels} vs {depth}")
    groups = channels // depth
    if groups > 1 and features % groups:
        raise InvalidArgumentError(f"output depth must be evenly divisible by number of groups: {features} vs {groups}")


@kernel("Conv2D", "Conv3D")
def conv(node: Construction) -> Kernel:
    """Sums of products over a window along the spatial axes; channels form groups if the filter has fewer."""
    attrs, sweep_of = _conv_attrs(node, "NDHWC" if node.op == "Conv3D" else "NHWC")
    # TensorFlow's Conv2D widens half types, its Conv3D does not.
    arithmetic = arithmetic_of(node.output_types[0]) if node.op == "Conv3D" else PLAIN

    def convolve(x: Array, w: Array) -> Array:
        if x.ndim == attrs.rank:
            x = channels_last(x, attrs)
        _check_operands(x, w, attrs.rank)
        require(w.size > 0, "filter must not have zero elements (i.e. all dimensions must be non-zero)")
        if not (x.shape[-1] > 0 or node.op == "Conv2D"):
            raise InvalidArgumentError(_NO_CHANNELS.format(w.shape[-2]))
        walked = sweep_of(x.shape[1:-1], w.shape[:-2])
        return as_laid_out(conv_arithmetic.convolve(x, w, walked, arithmetic), attrs)

    return of_dense(in_float32(convolve, node.output_types[0]))


@kernel("Conv")
def conv_of_any_rank(node: Construction) -> Kernel:
    """Conv2D or Conv3D, as the filter has axes, over images with any number of batch axes."""
    attrs = node.attrs
    require(attrs["groups"] == 1, "Grouped/Depthwise Convolutions are not supported yet.")
    rank, batch_axes = len(attrs["strides"]), int(attrs["batch_dims"])
    require(rank in (4, 5), f"The input must have 2 or 3 spatial dimensions but got {rank - 2}")
    spatial, first = "DHW"[5 - rank :], attrs["data_format"] == b"CHANNELS_FIRST"
    own = {
        "data_format": (f"NC{spatial}" if first else f"N{spatial}C").encode(),
        "dilations": attrs["dilations"] or (1,) * rank,
    }
    convolve = conv(replace(node, op=f"Conv{rank - 2}D", attrs={**attrs, **own}))

    def over_batches(x: Array, w: Array) -> Array:
        axes = x.ndim - batch_axes - 1
        if axes in (2, 3) and w.ndim == axes + 2:
            depth = x.shape[batch_axes if first else -1]
            require(depth == w.shape[-2], f"Input depth must be equal to filter depth: {depth} vs {w.shape[-2]}")
        require(axes in (2, 3), f"The input must have 2 or 3 spatial dimensions but got {axes}")
        leading = x.shape[:batch_axes]
        result = convolve(x.reshape(prod(leading), *x.shape[batch_axes:]), w)
        return np.asarray(result.reshape(*leading, *result.shape[1:]))

    return over_batches


@kernel("FusedPadConv2D", "FusedResizeAndPadConv2D")
def conv_of_mirrored(node: Construction) -> Kernel:
    """A convolution of images with their mirror image as a border, resized before where a size is given."""
    attrs: dict[str, object] = {
        "data_format": b"NHWC",
        "dilations": (1, 1, 1, 1),
        "explicit_paddings": (),
        **node.attrs,
    }
    convolve, mirror = conv(replace(node, op="Conv2D", attrs=attrs)), mirror_pad(node)
    if node.op == "FusedPadConv2D":
        return lambda x, paddings, w: convolve(mirror(x, paddings), w)
    own = {"align_corners": node.attrs["resize_align_corners"], "half_pixel_centers": False}
    resize = resize_bilinear(replace(node, op="ResizeBilinear", attrs=own))

    def resized(x: Array, size: Array, paddings: Array, w: Array) -> Array:
        return np.asarray(convolve(mirror(resize(x, size).astype(x.dtype, copy=False), paddings), w))

    return resized


def _full_sizes(sizes: Array, y: Array, attrs: WindowAttrs, channels: int, op: str) -> tuple[int, ...]:
    """The input's sizes, channels last; if the input of sizes has two, they are the spatial ones."""
    values = tuple(sizes.reshape(-1).tolist())
    for value in values:
        require(value >= 0, f"Expected a non-negative size, got {value}")
    if len(values) == attrs.rank - 2 and attrs.rank == 4:
        return (y.shape[0], *values, channels)
    if len(values) != attrs.rank:
        raise InvalidArgumentError(
            f"{op} requires input_sizes to contain {attrs.rank} values or {attrs.rank - 2} values, "
            f"but got: {len(values)}"
        )
    return (values[0], *attrs.spatial(values), values[attrs.channel_axis])


def _check_gradient(sizes: Sequence[int], window_shape: Sequence[int], y: Array, walked: Sweep, op: str) -> None:
    """InvalidArgumentError unless `y` has the output shape of a convolution of these sizes; all channels last."""
    if sizes[0] != y.shape[0]:
        raise InvalidArgumentError(
            f"{op}: input and out_backprop must have the same batch size. "
            f"Input batch: {sizes[0]}, outbackprop batch: {y.shape[0]}, batch_dim: 0"
        )
    if sizes[-1] <= 0:
        raise InvalidArgumentError(_NO_CHANNELS.format(window_shape[-2]))
    _check_groups(sizes[-1], window_shape)
    if window_shape[-1] != y.shape[-1]:
        raise InvalidArgumentError(f"{op}: filter and out_backprop must have the same out_depth")
    for axis, (actual, computed) in enumerate(zip(y.shape[1:-1], walked.output, strict=True)):
        if actual != computed:
            raise InvalidArgumentError(
                f"{op}: Size of out_backprop doesn't match computed: actual = {actual}, computed = {computed} "
                f"spatial_dim: {axis + 1} input: {sizes[axis + 1]} filter: {window_shape[axis]} output: {actual} "
                f"stride: {walked.strides[axis]} dilation: {walked.dilations[axis]}"
            )


@kernel("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_backprop_input(node: Construction) -> Kernel:
    """The gradient of a convolution with respect to its input, from the filter and the gradient of its output."""
    attrs, sweep_of = _conv_attrs(node, "NDHWC" if "3D" in node.op else "NHWC")
    arithmetic = arithmetic_of(node.output_types[0])
    label = "Conv2DCustomBackpropInput" if "2D" in node.op else "Conv3DBackpropInputOp"

    def gradient(input_sizes: Array, w: Array, y: Array) -> Array:
        require(y.ndim == w.ndim == attrs.rank, f"{label}: filter and out_backprop must be {attrs.rank}-dimensional")
        y = channels_last(y, attrs)
        sizes = _full_sizes(input_sizes, y, attrs, w.shape[-2], node.op)
        walked = sweep_of(sizes[1:-1], w.shape[:-2])
        _check_gradient(sizes, w.shape, y, walked, label)
        output_shape(sizes, y.dtype)
        return as_laid_out(conv_arithmetic.input_gradient(y, w, sizes[1:-1], sizes[-1], walked, arithmetic), attrs)

    return of_dense(in_float32(gradient, node.output_types[0]))


@kernel("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def conv_backprop_filter(node: Construction) -> Kernel:
    """The gradient of a convolution with respect to its filter, from the input and the gradient of its output."""
    attrs, sweep_of = _conv_attrs(node, "NDHWC" if "3D" in node.op else "NHWC")
    arithmetic = arithmetic_of(node.output_types[0])
    label = "Conv2DCustomBackpropFilter" if "2D" in node.op else "Conv3DBackpropFilterOp"

    def gradient(x: Array, filter_sizes: Array, y: Array) -> Array:
        require(x.ndim == y.ndim == attrs.rank, f"{label}: input and out_backprop must be {attrs.rank}-dimensional")
        window_shape = tuple(filter_sizes.reshape(-1).tolist())
        require(len(window_shape) == attrs.rank, f"{label}: filter_sizes must have {attrs.rank} values")
        x, y = channels_last(x, attrs), channels_last(y, attrs)
        walked = sweep_of(x.shape[1:-1], window_shape[:-2])
        _check_gradient(x.shape, window_shape, y, walked, label)
        output_shape(window_shape, y.dtype)
        return conv_arithmetic.filter_gradient(x, y, window_shape, walked, arithmetic)

    return of_dense(in_float32(gradient, node.output_types[0]))


def _depthwise_attrs(node: Construction) -> tuple[WindowAttrs, SweepOf]:
    attrs, sweep_of = _conv_attrs(node)
    if len(set(attrs.strides)) != 1:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column dimensions."
        )
    return attrs, sweep_of


@kernel("DepthwiseConv2dNative")
def depthwise_conv(node: Construction) -> Kernel:
    """A convolution of each channel with filters of its own."""
    attrs, sweep_of = _depthwise_attrs(node)
    arithmetic = arithmetic_of(node.output_types[0])

    def convolve(x: Array, w: Array) -> Array:
        if x.ndim != 4:
            raise InvalidArgumentError(f"input must be 4-dimensional{shape_text(x.shape)}")
        if w.ndim != 4:
            raise InvalidArgumentError(f"filter must be 4-dimensional: {shape_text(w.shape)}")
        x = channels_last(x, attrs)
        if x.shape[-1] != w.shape[2]:
            raise InvalidArgumentError(f"input and filter must have the same depth: {x.shape[-1]} vs {w.shape[2]}")
        walked = sweep_of(x.shape[1:-1], w.shape[:2])
        return as_laid_out(depthwise_arithmetic.depthwise(x, w, walked, arithmetic), attrs)

    return of_dense(in_float32(convolve, node.output_types[0]))


def _check_depthwise(sizes: Sequence[int], window_shape: Sequence[int], y: Array, walked: Sweep, label: str) -> None:
    if sizes[0] != y.shape[0]:
        raise InvalidArgumentError(f"{label}: input and out_backprop must have the same batch size")
    if sizes[-1] != window_shape[2]:
        raise InvalidArgumentError(f"{label}: input and filter must have the same in_depth")
    if y.shape[-1] != window_shape[2] * window_shape[3]:
        raise InvalidArgumentError(f"{label}: depth_multiplier * in_depth not equal to out_depth")
    for what, actual, computed in zip(("rows", "columns"), y.shape[1:-1], walked.output, strict=True):
        if actual != computed:
            raise InvalidArgumentError(
                f"{label}: Number of {what} of out_backprop doesn't match computed: "
                f"actual = {actual}, computed = {computed}"
            )


@kernel("DepthwiseConv2dNativeBackpropInput")
def depthwise_backprop_input(node: Construction) -> Kernel:
    """The gradient of a depthwise convolution with respect to its input."""
    attrs, sweep_of = _depthwise_attrs(node)
    arithmetic = arithmetic_of(node.output_types[0])
    label = "DepthwiseConv2DBackpropInput"

    def gradient(input_sizes: Array, w: Array, y: Array) -> Array:
        require(input_sizes.size == 4, f"{label}: input must be 4-dimensional")
        require(w.ndim == 4, f"{label}: filter must be 4-dimensional")
        require(y.ndim == 4, f"{label}: out_backprop must be 4-dimensional")
        y = channels_last(y, attrs)
        sizes = _full_sizes(input_sizes, y, attrs, w.shape[2], node.op)
        walked = sweep_of(sizes[1:-1], w.shape[:2])
        _check_depthwise(sizes, w.shape, y, walked, label)
        return as_laid_out(depthwise_arithmetic.depthwise_input_gradient(y, w, sizes[1:-1], walked, arithmetic), attrs)

    return of_dense(in_float32(gradient, node.output_types[0]))


@kernel("DepthwiseConv2dNativeBackpropFilter")
def depthwise_backprop_filter(node: Construction) -> Kernel:
    """The gradient of a depthwise convolution with respect to its filter."""
    attrs, sweep_of = _depthwise_attrs(node)
    arithmetic = arithmetic_of(node.output_types[0])
    label = "DepthwiseConv2DBackpropFilter"

    def gradient(x: Array, filter_sizes: Array, y: Array) -> Array:
        require(x.ndim == 4, f"{label}: input must be 4-dimensional")
        what = f"filter_sizes input must be 1-dim, not {filter_sizes.ndim}"
        require(filter_sizes.ndim == 1, f"Conv2DBackpropFilter: {what}")
        require(filter_sizes.size == 4, f"{label}: filter must be 4-dimensional")
        require(y.ndim == 4, f"{label}: out_backprop must be 4-dimensional")
        x, y = channels_last(x, attrs), channels_last(y, attrs)
        window_shape = tuple(filter_sizes.tolist())
        walked = sweep_of(x.shape[1:-1], window_shape[:2])
        _check_depthwise(x.shape, window_shape, y, walked, label)
        return depthwise_arithmetic.depthwise_filter_gradient(x, y, window_shape, walked, arithmetic)

    return of_dense(in_float32(gradient, node.output_types[0]))
