"""Gradients of DynamicPartition and DynamicStitch, each of which undoes the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import reshape_like
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("DynamicPartition")
def dynamic_partition(op: Forward, *grads: Tensor) -> Gradients:
    """The gradients of the parts, stitched together at the positions the elements came from."""
    partitions = op.inputs[1]
    places = op.make("Range", 0, op.make("Size", partitions), 1)
    places = op.make("Reshape", places, op.make("Shape", partitions))
    count = op.attrs["num_partitions"]
    places_of_parts = op.make_all("DynamicPartition", places, partitions, num_partitions=count)
    stitched = op.make("ParallelDynamicStitch", list(places_of_parts), list(grads))
    return reshape_like(op, stitched, 0), None


@gradient("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: Forward, grad: Tensor) -> Gradients:
    """The gradient gathered at the indices of each input."""
    count = op.attrs["N"]
    zero = op.g.constant(0, DataType.INT32)
    gathered = [op.make("GatherV2", grad, indices, zero) for indices in op.inputs[:count]]
    return [None] * count + gathered
