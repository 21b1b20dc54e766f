"""Gradients of ops that move elements between batch, space and depth, and of cutting images into patches.

The gradient of a rearrangement is its inverse; block sizes and paddings get none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import element, shape_of, span
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("SpaceToDepth")
def space_to_depth(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("DepthToSpace", grad, **op.own_attrs("block_size", "data_format")),)


@gradient("DepthToSpace")
def depth_to_space(op: Forward, grad: Tensor) -> Gradients:
    return (op.make("SpaceToDepth", grad, **op.own_attrs("block_size", "data_format")),)


@gradient("SpaceToBatch")
def space_to_batch(op: Forward, grad: Tensor) -> Gradients:
    return op.make("BatchToSpace", grad, op.inputs[1], **op.own_attrs("block_size")), None


@gradient("BatchToSpace")
def batch_to_space(op: Forward, grad: Tensor) -> Gradients:
    return op.make("SpaceToBatch", grad, op.inputs[1], **op.own_attrs("block_size")), None


@gradient("SpaceToBatchND")
def space_to_batch_nd(op: Forward, grad: Tensor) -> Gradients:
    return op.make("BatchToSpaceND", grad, *op.inputs[1:]), None, None


@gradient("BatchToSpaceND")
def batch_to_space_nd(op: Forward, grad: Tensor) -> Gradients:
    return op.make("SpaceToBatchND", grad, *op.inputs[1:]), None, None


@gradient("ExtractImagePatches", "ExtractVolumePatches")
def extract_patches(op: Forward, grad: Tensor) -> Gradients:
    """Each element gets the sum of the gradients of its copies, found by cutting an image of element numbers alike."""
    shape = shape_of(op, 0)
    batch, channels = element(op, shape, 0), element(op, shape, -1)
    inner = span(op, shape, 1, -1)
    one = op.g.constant([1], DataType.INT32)
    count = op.make("Prod", inner, op.g.constant(0, DataType.INT32))
    numbers = op.make("Reshape", op.make("Range", 1, count + 1, 1), op.make("ConcatV2", [one, inner, one], 0))
    attrs = op.own_attrs("ksizes", "strides", "rates", "padding")
    cut = op.make(op.op, op.make("Cast", numbers, DstT=DataType.DOUBLE), **attrs)
    places = op.make("Reshape", op.make("Cast", cut, DstT=DataType.INT32), [-1])
    # The last axis of patches is (element of the window, channel).
    every = op.make("Pack", [batch, op.make("Size", places), channels])
    copies = op.make("Transpose", op.make("Reshape", grad, every), [1, 0, 2])
    summed = op.make("UnsortedSegmentSum", copies, places, count + 1)
    image = op.make("Transpose", op.make("Slice", summed, [1, 0, 0], [-1, -1, -1]), [1, 0, 2])
    return (op.make("Reshape", image, shape),)
