"""Shape functions of poolings and their gradients; a gradient has the shape of the tensor it is the gradient of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....errors import InvalidArgumentError, UnimplementedError
from ...analysis.dims import ranked_shape_from
from ...analysis.shape_functions import ShapeContext, merge, merge_dims, shape_fn, with_rank
from ...dtypes import Shape
from .windows import WindowAttrs, output_size, window_attrs


@dataclass(frozen=True, slots=True)
class PoolAttrs:
    """A pooling window: its spatial part, and its extent and stride along the channels."""

    windows: WindowAttrs
    window: tuple[int, ...]
    depth_window: int
    depth_stride: int


def pool_attrs(attrs: Mapping[str, Any], layout: str) -> PoolAttrs:
    """Reads and checks the attrs of a pooling op; raises as TensorFlow does for windows over batch and channels."""
    windows = window_attrs(attrs, layout)
    ksize = tuple(attrs["ksize"])
    if len(ksize) != windows.rank:
        raise InvalidArgumentError(f"Sliding window ksize field must specify {windows.rank} dimensions")
    if min(ksize) <= 0:
        sizes = ",".join(map(str, ksize))
        raise InvalidArgumentError(
            f"Sliding window ksize must be positive. The specified or inferred ksize is: {sizes}"
        )
    batch_axis = windows.layout.index("N")
    if ksize[batch_axis] != 1 or windows.raw_strides[batch_axis] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")
    window, depth = windows.spatial(ksize), ksize[windows.channel_axis]
    if depth > 1 and max(window) > 1:
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        )
    return PoolAttrs(windows, window, depth, windows.raw_strides[windows.channel_axis])


def _pooled(x: Shape, attrs: PoolAttrs) -> Shape:
    windows = attrs.windows
    sizes = with_rank(x, windows.rank)
    parts = zip(windows.spatial(sizes), attrs.window, windows.strides, windows.dilations, windows.explicit, strict=True)
    spatial = [output_size(n, k, s, d, windows.padding, e) for n, k, s, d, e in parts]
    channels = output_size(sizes[windows.channel_axis], attrs.depth_window, attrs.depth_stride, 1, windows.padding)
    return windows.assemble(sizes[windows.layout.index("N")], spatial, channels)


def _attrs(c: ShapeContext) -> PoolAttrs:
    return pool_attrs(c.attrs, "NDHWC" if "3D" in c.op else "NHWC")


@shape_fn("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolWithArgmax")
def pool(c: ShapeContext) -> Sequence[Shape]:
    """The output sizes of the window along each axis; argmax has the shape of the maxima."""
    with_rank(c.inputs[0], 5 if "3D" in c.op else 4)
    return (_pooled(c.inputs[0], _attrs(c)),) * len(c.output_types or (0,))


@shape_fn("MaxPoolV2")
def pool_v2(c: ShapeContext) -> Sequence[Shape]:
    """As MaxPool, where window and strides are known."""
    return (_pooled_by_inputs(c, 1),)


def _pooled_by_inputs(c: ShapeContext, index: int) -> Shape:
    """The first input's shape, pooled by window and strides that are inputs `index` and `index` + 1."""
    x = with_rank(c.inputs[0], 4)
    for sizes in c.inputs[index : index + 2]:
        merge_dims(with_rank(sizes, 1)[0], 4)
    window, strides = c.constant(index), c.constant(index + 1)
    if window is None or strides is None:
        return None
    attrs = {**c.attrs, "ksize": tuple(map(int, window)), "strides": tuple(map(int, strides))}
    return _pooled(x, pool_attrs(attrs, "NHWC"))


@shape_fn("MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax")
def max_pool_grad(c: ShapeContext) -> Sequence[Shape]:
    return (with_rank(c.inputs[0], 5 if "3D" in c.op else 4),)


@shape_fn("MaxPoolGradGrad", "MaxPool3DGradGrad", "MaxPoolGradGradV2")
def pool_grad_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the pooled output, from that of the input; the second input must agree."""
    pooled = _pooled_by_inputs(c, 3) if c.op.endswith("V2") else _pooled(c.inputs[0], _attrs(c))
    merge(c.inputs[0], c.inputs[2])
    merge(c.inputs[1], pooled)
    return (pooled,)


@shape_fn("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(c: ShapeContext) -> Sequence[Shape]:
    """The shape that the first input holds."""
    return (ranked_shape_from(c, 0, 5 if "3D" in c.op else 4),)
