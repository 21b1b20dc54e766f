"""Small training steps of a perceptron and an encoder: gradients, and updates by gradient descent or Adam.

Placeholders: "x" and "target", float [rows,width]. Result: "loss". Targets: "train" and "initialise". Layer `k` is in
the scope `layer<k>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from partita.actors import open_session
from partita.graph import DataType, Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array

Optimizer = Literal["sgd", "adam"]
VariablesAre = Literal["references", "resources"]
ADAM = [np.float32(number) for number in (0.9, 0.999, 0.01, 0.9, 0.999, 1e-7)]


@dataclass(frozen=True)
class SmallStep:
    """The graph of a step, the names of the values of its parameters, and the shape of `x` and `target`."""

    graph: Graph
    parameters: tuple[str, ...]
    shape: tuple[int, int]

    async def trained(self, graph: Graph, steps: int = 5) -> list[Array]:
        """The loss of each step and then the parameters, of `graph` in place of the graph of the step."""
        async with open_session(graph, "cpu:1", seed=7) as session:
            await session.run([], {}, ["initialise"])
            losses = []
            for x, target in self.batches(steps):
                losses += await session.run(["loss"], {"x": x, "target": target}, ["train"])
            return [*losses, *await session.run(self.parameters)]

    def batches(self, steps: int) -> Iterator[tuple[Array, Array]]:
        """Inputs and targets of each step."""
        rng = np.random.default_rng(3)
        for _ in range(steps):
            x = rng.standard_normal(self.shape).astype(np.float32)
            yield x, np.sin(x)


class _Variables:
    """Makes the parameters of a model, and afterwards their updates."""

    def __init__(self, b: GraphBuilder, kind: VariablesAre) -> None:
        self.b = b
        self.kind = kind
        self.parameters: list[tuple[Tensor, Tensor, tuple[int, ...]]] = []  # handle, value, shape
        self.assigned: list[Operation] = []

    def parameter(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The value of a new parameter, drawn by its number."""
        rng = np.random.default_rng(len(self.parameters))
        handle, value = self._made(name, (rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32))
        self.parameters.append((handle, value, shape))
        return value

    def update(self, optimizer: Optimizer) -> None:
        """Adds gradients, updates, and the nodes "train" and "initialise"."""
        slopes = gradients(self.b, ["loss"], [value for _, value, _ in self.parameters])
        prefix = "Resource" if self.kind == "resources" else ""
        updates = []
        for number, ((handle, _, shape), slope) in enumerate(zip(self.parameters, slopes, strict=True)):
            if optimizer == "sgd":
                updates.append(self.b.op(f"{prefix}ApplyGradientDescent", handle, np.float32(0.1), slope))
            else:
                zeros = np.zeros(shape, np.float32)
                moments = [self._made(f"{moment}{number}", zeros)[0] for moment in "mv"]
                updates.append(self.b.op(f"{prefix}ApplyAdam", handle, *moments, *ADAM, slope))
        self.b.group(*updates, name="train")
        self.b.group(*self.assigned, name="initialise")

    def _made(self, name: str, initial: Array) -> tuple[Tensor, Tensor]:
        """Handle and value of a variable."""
        b, shape = self.b, initial.shape
        if self.kind == "references":
            handle = b.variable(name, DataType.FLOAT, shape)
            self.assigned.append(b.op("Assign", handle, initial))
            return handle, b.identity(handle, name=f"{name}/read")
        attrs = {"shared_name": b.unique_name(name)}
        handle = b.op("VarHandleOp", name=name, dtype=DataType.FLOAT, shape=shape, attrs=attrs)[0]
        self.assigned.append(b.op("AssignVariableOp", handle, initial))
        return handle, b.op("ReadVariableOp", handle, name=f"{name}/read", dtype=DataType.FLOAT)[0]


def perceptron(
    activations: Sequence[str],
    *,
    width: int = 6,
    rows: int = 5,
    variables: VariablesAre = "resources",
    optimizer: Optimizer = "sgd",
    is_open: bool = False,
) -> SmallStep:
    """A layer per activation: the name of an elementwise op, "" for none, or "dropout".

    With `is_open` the graph is made for batches of any size.
    """
    b = GraphBuilder()
    made, shape = _Variables(b, variables), (rows, width)
    h = b.placeholder("x", "float32", (None, width) if is_open else shape)
    for k, activation in enumerate(activations):
        with b.scope(f"layer{k}"):
            h = b.op("BiasAdd", h @ made.parameter("w", (width, width)), made.parameter("bias", (width,)))[0]
            if activation == "dropout":
                drawn = b.op("RandomUniform", b.op("Shape", h), dtype=DataType.FLOAT, name="drawn")
                h = h * b.op("Cast", b.op("Greater", drawn, np.float32(0.5)), DstT=DataType.FLOAT)
            elif activation:
                h = b.op(activation, h)[0]
    return _with_loss(b, h, made, optimizer, shape, is_open=is_open)


def encoder(
    layers: int,
    *,
    width: int = 8,
    rows: int = 4,
    variables: VariablesAre = "resources",
    optimizer: Optimizer = "adam",
) -> SmallStep:
    """Layers of attention over the rows with one head, and of a perceptron, each added to its normalised input."""
    b = GraphBuilder()
    made, shape = _Variables(b, variables), (rows, width)
    h = b.placeholder("x", "float32", shape)
    for k in range(layers):
        with b.scope(f"layer{k}"):
            normal = _normalised(b, h)
            query, key, value = (normal @ made.parameter(name, (width, width)) for name in ("query", "key", "value"))
            scores = b.op("Softmax", b.op("MatMul", query, key, transpose_b=True) * np.float32(width**-0.5))
            h = h + b.op("MatMul", scores, value)
            wide = _normalised(b, h) @ made.parameter("widen", (width, 2 * width))
            h = h + b.op("Mul", wide, b.op("Sigmoid", wide))[0] @ made.parameter("narrow", (2 * width, width))
    return _with_loss(b, h, made, optimizer, shape)


def _normalised(b: GraphBuilder, h: Tensor) -> Tensor:
    axis = np.array([1], np.int32)
    centred = h - b.op("Mean", h, axis, keep_dims=True)
    return centred * b.op("Rsqrt", b.op("Mean", b.op("Square", centred), axis, keep_dims=True) + np.float32(1e-3))


def _with_loss(
    b: GraphBuilder,
    y: Tensor,
    made: _Variables,
    optimizer: Optimizer,
    shape: tuple[int, int],
    *,
    is_open: bool = False,
) -> SmallStep:
    target = b.placeholder("target", "float32", (None, shape[1]) if is_open else shape)
    error = b.op("Sub", y, target, name="error")
    b.op("Mean", b.op("Square", error), np.array([0, 1], np.int32), name="loss")
    made.update(optimizer)
    return SmallStep(b.graph(), tuple(value.name for _, value, _ in made.parameters), shape)
