"""Gradients of reading variables: the handle gets the gradient of the variable's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...dtypes import DataType
from ..arrays.gather_gradients import row_slices, summed_by_index

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("ResourceGather")
def resource_gather(op: Forward, grad: Tensor) -> Gradients:
    shape = op.make("VariableShape", op.inputs[0])
    if not op.attrs["batch_dims"]:
        return row_slices(op, grad, op.inputs[1], shape), None
    axis = batch = op.g.constant(op.attrs["batch_dims"], DataType.INT32)
    return summed_by_index(op, grad, shape, axis, batch), None


@gradient("ResourceGatherNd")
def resource_gather_nd(op: Forward, grad: Tensor) -> Gradients:
    """The gradient scattered to the indices; where an index occurs twice its gradients are added."""
    shape = op.make("VariableShape", op.inputs[0], out_type=op.input_types[1])
    return op.make("ScatterNd", op.inputs[1], grad, shape), None


@gradient("ReadVariableOp")
def read(_op: Forward, grad: Tensor) -> Gradients:
    return (grad,)
