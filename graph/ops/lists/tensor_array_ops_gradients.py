"""Gradients of tensor arrays: a write becomes a read of the gradient array, a read becomes a write.

Each call of gradients() has a gradient array of its own for each array, identified by the attr `source`; gradients
written to one index several times are added. The tensor that carries the gradient in the graph is the flow, the scalar
that orders the ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...analysis.gradient_rules import Forward, Gradients, gradient

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _gradient_array(op: Forward, after: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient array of input 0 and its flow, made after `after`."""
    array, flow = op.make_all("TensorArrayGradV3", op.inputs[0], after, source=op.source)
    return array, flow


@gradient("TensorArrayReadV3", "TensorArrayGatherV3")
def read(op: Forward, grad: Tensor) -> Gradients:
    """The gradient is written at the index that was read."""
    _, places, flow = op.inputs
    array, flow = _gradient_array(op, flow)
    written = "TensorArrayWriteV3" if op.op == "TensorArrayReadV3" else "TensorArrayScatterV3"
    return None, None, op.make(written, array, places, grad, flow)


@gradient("TensorArrayWriteV3", "TensorArrayScatterV3")
def write(op: Forward, flow_grad: Tensor) -> Gradients:
    """The gradient is read at the index that was written."""
    array, flow = _gradient_array(op, flow_grad)
    read_back = "TensorArrayReadV3" if op.op == "TensorArrayWriteV3" else "TensorArrayGatherV3"
    value = op.make(read_back, array, op.inputs[1], flow, dtype=op.input_types[2])
    return None, None, value, flow_grad


@gradient("TensorArrayConcatV3", takes_none=True)
def concat(op: Forward, grad: Tensor, _lengths_grad: None) -> Gradients:
    """The gradient is split into pieces of the same lengths."""
    array, flow = _gradient_array(op, op.inputs[1])
    return None, op.make("TensorArraySplitV3", array, grad, op.outputs[1], flow)


@gradient("TensorArraySplitV3")
def split(op: Forward, flow_grad: Tensor) -> Gradients:
    """The gradient is concatenated."""
    array, flow = _gradient_array(op, flow_grad)
    value = op.make("TensorArrayConcatV3", array, flow, dtype=op.input_types[1])
    return None, value, None, flow_grad
