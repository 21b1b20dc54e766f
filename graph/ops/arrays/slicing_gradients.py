"""Gradients of ops that cut and join; positions, sizes and axes get none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import joined, rank_of, shape_of, zeros_like
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@gradient("Pack")
def pack(op: Forward, grad: Tensor) -> Gradients:
    return op.make_all("Unpack", grad, num=len(op.input_types), axis=op.attrs["axis"])


@gradient("Unpack")
def unpack(op: Forward, *grads: Tensor) -> Gradients:
    return (op.make("Pack", list(grads), axis=op.attrs["axis"]),)


@gradient("Split")
def split(op: Forward, *grads: Tensor) -> Gradients:
    return None, joined(op, grads, op.inputs[0])


@gradient("SplitV")
def split_v(op: Forward, *grads: Tensor) -> Gradients:
    return joined(op, grads, op.inputs[2]), None, None


@gradient("Concat")
def concat(op: Forward, grad: Tensor) -> Gradients:
    return None, *_cut(op, grad, range(1, len(op.input_types)), 0)


@gradient("ConcatV2")
def concat_v2(op: Forward, grad: Tensor) -> Gradients:
    last = len(op.input_types) - 1
    return *_cut(op, grad, range(last), last), None


def _cut(op: Forward, grad: Tensor, ports: range, axis_port: int) -> Gradients:
    """The parts of `grad` that belong to inputs `ports` of a concatenation."""
    if len(ports) == 1:
        return [grad]
    axis = op.constant_input(axis_port)
    if axis is not None:
        sizes = [_size_along(op, port, int(axis)) for port in ports]
        if all(size >= 0 for size in sizes):
            return op.make_all(
                "SplitV", grad, op.g.constant(sizes, DataType.INT32), op.inputs[axis_port], num_split=len(sizes)
            )
    shapes = [shape_of(op, port) for port in ports]
    along = op.make("FloorMod", op.make("Cast", op.inputs[axis_port], DstT=DataType.INT32), rank_of(op, ports[0]))
    offsets = op.make_all("ConcatOffset", along, shapes)
    return [op.make("Slice", grad, offset, shape) for offset, shape in zip(offsets, shapes, strict=True)]


def _size_along(op: Forward, port: int, axis: int) -> int:
    sizes = op.input_sizes(port)
    return sizes[axis] if isinstance(sizes, tuple) and -len(sizes) <= axis < len(sizes) else -1


@gradient("Slice")
def cut_out(op: Forward, grad: Tensor) -> Gradients:
    """The gradient of the slice, padded with zeros to the input's shape."""
    kind = op.input_types[1]
    begin = op.inputs[1]
    end = shape_of(op, 0, kind) - begin - op.make("Shape", grad, out_type=kind)
    return op.make("Pad", grad, op.make("Pack", [begin, end], axis=1)), None, None


@gradient("StridedSlice")
def strided_slice(op: Forward, grad: Tensor) -> Gradients:
    """Calls StridedSliceGrad, which puts the gradient into zeros of the input's shape."""
    _, *bounds = op.inputs
    shape = shape_of(op, 0, op.input_types[1])
    return op.make("StridedSliceGrad", shape, *bounds, grad, **op.own_attrs(*_MASKS)), None, None, None


@gradient("StridedSliceGrad")
def strided_slice_grad(op: Forward, grad: Tensor) -> Gradients:
    """The same slice of the gradient."""
    _, *bounds, _ = op.inputs
    return None, None, None, None, op.make("StridedSlice", grad, *bounds, **op.own_attrs(*_MASKS))


@gradient("TensorStridedSliceUpdate")
def strided_slice_update(op: Forward, grad: Tensor) -> Gradients:
    """The tensor gets zeros where it was overwritten; the new value gets the slice of the gradient."""
    _, *bounds, _ = op.inputs
    masks = op.own_attrs(*_MASKS)
    outside = op.make("TensorStridedSliceUpdate", grad, *bounds, zeros_like(op, 4), **masks)
    return outside, None, None, None, op.make("StridedSlice", grad, *bounds, **masks)
