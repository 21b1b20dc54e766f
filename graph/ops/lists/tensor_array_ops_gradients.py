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


_GRADIENTS = {"": "TensorArrayGrad", "V2": "TensorArrayGradV2", "V3": "TensorArrayGradV3"}
_PAIRS = {"Read": "Write", "Write": "Read", "Gather": "Scatter", "Scatter": "Gather"}


def _parts(name: str) -> tuple[str, str]:
    """What an op does, and its version: Read and V2 of TensorArrayReadV2."""
    version = name[-2:] if name.endswith(("V2", "V3")) else ""
    return name.removeprefix("TensorArray").removesuffix(version), version


def _inverse(op: Forward) -> str:
    """The op that reads what this one writes, or the other way round, of the same version."""
    does, version = _parts(op.op)
    return f"TensorArray{_PAIRS[does]}{version}"


def _versions(*names: str) -> list[str]:
    return [f"TensorArray{name}{version}" for name in names for version in _GRADIENTS]


def _gradient_array(op: Forward, after: Tensor) -> tuple[Tensor, Tensor]:
    """The gradient array of input 0 and its flow, made after `after`, which is the flow before version 3."""
    array, *flow = op.make_all(_GRADIENTS[_parts(op.op)[1]], op.inputs[0], after, source=op.source)
    return array, flow[0] if flow else after


@gradient(*_versions("Read", "Gather"))
def read(op: Forward, grad: Tensor) -> Gradients:
    """The gradient is written at the index that was read."""
    _, places, flow = op.inputs
    array, flow = _gradient_array(op, flow)
    return None, None, op.make(_inverse(op), array, places, grad, flow)


@gradient(*_versions("Write", "Scatter"))
def write(op: Forward, flow_grad: Tensor) -> Gradients:
    """The gradient is read at the index that was written."""
    array, flow = _gradient_array(op, flow_grad)
    value = op.make(_inverse(op), array, op.inputs[1], flow, dtype=op.input_types[2])
    return None, None, value, flow_grad


@gradient(*_versions("Concat"), takes_none=True)
def concat(op: Forward, grad: Tensor, _lengths_grad: None) -> Gradients:
    """The gradient is split into pieces of the same lengths."""
    array, flow = _gradient_array(op, op.inputs[1])
    return None, op.make(f"TensorArraySplit{_parts(op.op)[1]}", array, grad, op.outputs[1], flow)


@gradient(*_versions("Split"))
def split(op: Forward, flow_grad: Tensor) -> Gradients:
    """The gradient is concatenated."""
    array, flow = _gradient_array(op, flow_grad)
    value = op.make(f"TensorArrayConcat{_parts(op.op)[1]}", array, flow, dtype=op.input_types[1])
    return None, value, None, flow_grad
