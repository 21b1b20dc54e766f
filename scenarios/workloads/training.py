"""Data-parallel training of a perceptron: parameters on the host, a replica per device, gradients added on the host.

Placeholders: "x", float [rows,FEATURES], and "labels", int32 [rows]. Result: "loss", a float scalar from before the
update. Targets: "train" and "initialise". A variable is read once per step, before its update, which waits for the
gradients of all replicas. The gradients are written by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ...graph import DataType, GraphDef
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Operation, Tensor
from .parameters import uniform

VariableKind = Literal["reference", "resource"]
FEATURES, HIDDEN, CLASSES = 256, 512, 10
LEARNING_RATE = 0.5
_HOST = "/device:CPU:0"


class _Parameter(NamedTuple):
    """A parameter: the input of updates, its value for computations, and its initial assignment."""

    handle: Tensor
    value: Tensor
    assign: Operation


def training_step(kind: VariableKind, replicas: Sequence[str], rows: int) -> GraphDef:
    """The training graph; `rows` must divide by the number of replicas."""
    b = GraphBuilder()
    with b.device(_HOST):
        x = b.placeholder("x", "float32", (rows, FEATURES))
        labels = b.placeholder("labels", "int32", (rows,))
        shards = b.op("Split", 0, x, num_split=len(replicas), name="x_shards")
        label_shards = b.op("Split", 0, labels, num_split=len(replicas), name="label_shards")
        variables = _variables(b, kind)
    losses, gradients = [], []
    for k, device in enumerate(replicas):
        with b.device(device), b.scope(f"replica{k}"):
            loss, gradient = _replica(b, [v.value for v in variables], shards[k], label_shards[k])
            losses.append(loss)
            gradients.append(gradient)
    with b.device(_HOST):
        b.op("Mul", b.op("AddN", losses), 1 / len(replicas), name="loss")
        updates = [
            _update(b, kind, variable, b.op("AddN", list(parts))[0] * (1 / rows))
            for variable, parts in zip(variables, zip(*gradients, strict=True), strict=True)
        ]
        b.group(*updates, name="train")
        b.group(*(v.assign for v in variables), name="initialise")
    return b.graph_def()


def _variables(b: GraphBuilder, kind: VariableKind) -> list[_Parameter]:
    shapes = {"w1": (FEATURES, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}
    make = _reference if kind == "reference" else _resource
    return [make(b, name, shape) for name, shape in shapes.items()]


def _reference(b: GraphBuilder, name: str, shape: Sequence[int]) -> _Parameter:
    """A variable whose output is a reference to its buffer, as in TensorFlow 1."""
    handle = b.variable(name, DataType.FLOAT, shape)
    return _Parameter(handle, b.identity(handle, name=f"{name}/read"), b.op("Assign", handle, _initial(b, name, shape)))


def _resource(b: GraphBuilder, name: str, shape: Sequence[int]) -> _Parameter:
    """A variable behind a handle, as in TensorFlow 2."""
    handle = b.op("VarHandleOp", name=name, dtype=DataType.FLOAT, shape=shape, attrs={"shared_name": name})[0]
    value = b.op("ReadVariableOp", handle, name=f"{name}/read", dtype=DataType.FLOAT)[0]
    return _Parameter(handle, value, b.op("AssignVariableOp", handle, _initial(b, name, shape)))


def _initial(b: GraphBuilder, name: str, shape: Sequence[int]) -> Tensor:
    return b.constant(uniform(name, shape) * (1 / shape[0]) ** 0.5, DataType.FLOAT, name=f"{name}/initial")


def _update(b: GraphBuilder, kind: VariableKind, variable: _Parameter, gradient: Tensor) -> Operation:
    op = "ApplyGradientDescent" if kind == "reference" else "ResourceApplyGradientDescent"
    return b.op(op, variable.handle, LEARNING_RATE, gradient)


def _replica(b: GraphBuilder, values: Sequence[Tensor], x: Tensor, labels: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Forward and backward: the mean loss, and the gradients of the sum of losses, in the order of `values`."""
    w1, b1, w2, b2 = values
    hidden = b.op("Relu", b.op("BiasAdd", b.op("MatMul", x, w1), b1), name="hidden")[0]
    logits = b.op("BiasAdd", b.op("MatMul", hidden, w2), b2, name="logits")
    losses, d_logits = b.op("SparseSoftmaxCrossEntropyWithLogits", logits, labels, name="losses")
    d_hidden = b.op("ReluGrad", b.op("MatMul", d_logits, w2, transpose_b=True), hidden)
    gradients = [
        b.op("MatMul", x, d_hidden, transpose_a=True, name="d_w1"),
        b.op("BiasAddGrad", d_hidden, name="d_b1"),
        b.op("MatMul", hidden, d_logits, transpose_a=True, name="d_w2"),
        b.op("BiasAddGrad", d_logits, name="d_b2"),
    ]
    return b.op("Mean", losses, 0, name="loss")[0], [gradient[0] for gradient in gradients]
