"""Training steps of small models on one device, for tests of the passes that make them parallel.

step = TrainingModel("transformer", "adam", dtype="float64", kind="resource", clips=True, decays=True)
step.graph()         fed "x" and "y"; "loss" is fetched, "train" and "init" are targets, variables are named in `names`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from partita.graph import Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array

WIDTH, CLASSES, LENGTH, WORDS = 8, 3, 4, 11
RATE = 0.05
MODELS = ("perceptron", "cnn", "transformer")
OPTIMIZERS = ("sgd", "momentum", "adam", "keras_adam", "keras_momentum")


@dataclass
class TrainingModel:
    """A model with its loss and optimizer; `kind` is "resource" or "reference"."""

    model: str = "perceptron"
    optimizer: str = "sgd"
    dtype: str = "float64"
    kind: str = "resource"
    rows: int | None = None
    clips: bool = False
    decays: bool = False
    scales: bool = False
    averages: bool = False
    reduction: str = "mean"
    device: str = ""
    b: GraphBuilder = field(default_factory=GraphBuilder)
    names: list[str] = field(default_factory=list)
    reads: dict[str, Tensor] = field(default_factory=dict)
    handles: dict[str, Tensor] = field(default_factory=dict)
    initial: list[Operation] = field(default_factory=list)
    slopes: list[str] = field(default_factory=list)
    """the gradients, by parameter"""

    def graph(self) -> Graph:
        """The step."""
        with self.b.device(self.device):
            losses = MODELS_BY_NAME[self.model](self)
            loss = self._reduced(losses)
            trained = list(self.names)
            scaled = loss * self.number(1024) if self.scales else loss
            found = gradients(self.b, [scaled.name], [self.reads[name] for name in trained])
            grads = [self.b.tensor(g) for g in found if g is not None]
            assert len(grads) == len(trained)
            self.slopes = [grad.name for grad in grads]
            updates = self._updates(trained, self._prepared(trained, grads))
            if self.averages:
                updates += self._averages(trained, updates)
            self.b.group(*updates, name="train")
            self.b.group(*self.initial, name="init")
        return self.b.graph()

    def feeds(self, rows: int, step: int) -> dict[str, Array]:
        """A batch of that many rows."""
        draw = np.random.default_rng([rows, step])
        y = draw.integers(0, CLASSES, rows).astype(np.int32)
        if self.model == "transformer":
            return {
                "x": draw.integers(0, WORDS, (rows, LENGTH)).astype(np.int32),
                "y": draw.integers(0, WORDS, (rows, LENGTH)).astype(np.int32),
            }
        shape = (rows, 5) if self.model == "perceptron" else (rows, 6, 6, 2)
        return {"x": draw.normal(size=shape).astype(self.float_type), "y": y}

    @property
    def float_type(self) -> str:
        """The type of variables and feeds; in mixed precision products are of float16."""
        return "float32" if self.dtype == "mixed" else self.dtype

    @property
    def rate(self) -> float:
        """The learning rate: a sum over rows has larger gradients than a mean."""
        return RATE if self.reduction == "mean" else RATE / 64

    # Parts

    def number(self, value: float) -> Tensor:
        """A constant of the type of variables."""
        return self.b.constant(np.asarray(value, self.float_type))

    def variable(self, name: str, value: Array) -> Tensor:
        """The value of a new variable."""
        value = value.astype(self.float_type)
        b = self.b
        if self.kind == "resource":
            shape = value.shape
            handle = b.op("VarHandleOp", name=name, dtype=self.float_type, shape=shape, attrs={"shared_name": name})[0]
            self.initial.append(b.op("AssignVariableOp", handle, b.constant(value), name=f"{name}/init"))
            read = b.op("ReadVariableOp", handle, name=f"{name}/read", dtype=self.float_type)[0]
        else:
            handle = b.variable(name, self.float_type, value.shape)
            self.initial.append(b.op("Assign", handle, b.constant(value), name=f"{name}/init"))
            read = b.identity(handle, name=f"{name}/read")
        self.handles[name], self.reads[name] = handle, read
        self.names.append(name)
        return read

    def weights(self, name: str, *shape: int) -> Tensor:
        """A weight matrix or filter."""
        draw = np.random.default_rng([len(name), *name.encode()])
        value = self.variable(name, draw.normal(size=shape) / np.sqrt(max(1, prod(shape[:-1]))))
        return self.b.op("Cast", value, DstT="float16")[0] if self.dtype == "mixed" else value

    def wide(self, value: Tensor) -> Tensor:
        """The value in the type of variables."""
        return self.b.op("Cast", value, DstT=self.float_type)[0] if self.dtype == "mixed" else value

    def narrow(self, value: Tensor) -> Tensor:
        """The value in the type of products."""
        return self.b.op("Cast", value, DstT="float16")[0] if self.dtype == "mixed" else value

    def dense(self, x: Tensor, name: str, inputs: int, outputs: int) -> Tensor:
        """A matrix product and a bias."""
        product = self.b.op("MatMul", x, self.weights(f"{name}/kernel", inputs, outputs))
        return self.b.op("BiasAdd", product, self.weights(f"{name}/bias", outputs), name=f"{name}/out")[0]

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of each row."""
        return self.b.op("SparseSoftmaxCrossEntropyWithLogits", self.wide(logits), labels)[0]

    def _reduced(self, losses: Tensor) -> Tensor:
        return self.b.op("Mean" if self.reduction == "mean" else "Sum", losses, [0], name="loss")[0]

    # Optimizers

    def _prepared(self, names: Sequence[str], grads: list[Tensor]) -> list[Tensor]:
        b = self.b
        if self.scales:
            grads = [g * self.number(1 / 1024) for g in grads]
        if self.clips:
            norm = b.op("Sqrt", b.op("AddN", [b.op("L2Loss", g) for g in grads]))
            factor = b.op("Minimum", b.op("Reciprocal", norm), self.number(1.0))
            grads = [b.op("Mul", g, factor)[0] for g in grads]
        if self.decays:
            grads = [g + self.reads[n] * self.number(0.01) for n, g in zip(names, grads, strict=True)]
        return grads

    def _slot(self, name: str, slot: str) -> Tensor:
        shape = self.shapes()[name]
        self.variable(f"{name}/{slot}", np.zeros(shape))
        return self.handles[f"{name}/{slot}"]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of variables."""
        return {
            node.name: tuple(size.size for size in node.attr["shape"].shape.dim)
            for node in self.b.graph_def().node
            if node.name in self.handles
        }

    def _updates(self, names: Sequence[str], grads: list[Tensor]) -> list[Operation]:
        make: Callable[[str, Tensor], Operation] = getattr(self, f"_{self.optimizer}")
        return [make(name, grad) for name, grad in zip(names, grads, strict=True)]

    def _apply(self, op: str, *inputs: Any) -> Operation:
        return self.b.op(("Resource" if self.kind == "resource" else "") + op, *inputs)

    def _sgd(self, name: str, grad: Tensor) -> Operation:
        return self._apply("ApplyGradientDescent", self.handles[name], self.rate, grad)

    def _momentum(self, name: str, grad: Tensor) -> Operation:
        return self._apply("ApplyMomentum", self.handles[name], self._slot(name, "momentum"), self.rate, grad, 0.9)

    def _adam(self, name: str, grad: Tensor) -> Operation:
        slots = self._slot(name, "m"), self._slot(name, "v")
        return self._apply("ApplyAdam", self.handles[name], *slots, 0.9, 0.999, self.rate, 0.9, 0.999, 1e-7, grad)

    def _read(self, handle: Tensor, *after: Operation) -> Tensor:
        return self.b.op("ReadVariableOp", handle, dtype=self.float_type, control=after)[0]

    def _keras_adam(self, name: str, grad: Tensor) -> Operation:
        """As Keras 3 writes it: arithmetic on what is read after each assignment."""
        b, first, second = self.b, self._slot(name, "m"), self._slot(name, "v")
        one = b.op("AssignAddVariableOp", first, (grad - self._read(first)) * self.number(0.1))
        square = b.op("Square", grad)[0]
        two = b.op("AssignAddVariableOp", second, (square - self._read(second)) * self.number(0.001))
        root = b.op("Sqrt", self._read(second, two))[0] + self.number(1e-7)
        step = self._read(first, one) * self.number(self.rate) / root
        return b.op("AssignSubVariableOp", self.handles[name], step)

    def _keras_momentum(self, name: str, grad: Tensor) -> Operation:
        b, slot = self.b, self._slot(name, "momentum")
        new = self._read(slot) * self.number(0.9) - grad * self.number(self.rate)
        kept = b.op("AssignVariableOp", slot, new)
        return b.op("AssignAddVariableOp", self.handles[name], self._read(slot, kept))

    def _averages(self, names: Sequence[str], updates: Sequence[Operation]) -> list[Operation]:
        """Moving averages of the parameters, after their update."""
        found = []
        for name, update in zip(names, updates, strict=True):
            mean = self._slot(name, "average")
            change = (self._read(self.handles[name], update) - self._read(mean)) * self.number(0.1)
            found.append(self.b.op("AssignAddVariableOp", mean, change))
        return found


def _perceptron(m: TrainingModel) -> Tensor:
    x = m.narrow(m.b.placeholder("x", m.float_type, (m.rows, 5)))
    labels = m.b.placeholder("y", "int32", (m.rows,))
    hidden = m.b.op("Tanh", m.dense(x, "hidden", 5, WIDTH))[0]
    return m.losses(m.dense(hidden, "out", WIDTH, CLASSES), labels)


def _cnn(m: TrainingModel) -> Tensor:
    b = m.b
    x = m.narrow(b.placeholder("x", m.float_type, (m.rows, 6, 6, 2)))
    labels = b.placeholder("y", "int32", (m.rows,))
    maps = b.op("Conv2D", x, m.weights("conv/kernel", 3, 3, 2, WIDTH), strides=[1, 1, 1, 1], padding=b"SAME")
    maps = b.op("Relu", b.op("BiasAdd", maps, m.weights("conv/bias", WIDTH)))
    maps = b.op("AvgPool", maps, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding=b"VALID")
    flat = b.op("Reshape", maps, [-1, 9 * WIDTH])[0]
    return m.losses(m.dense(flat, "out", 9 * WIDTH, CLASSES), labels)


def _transformer(m: TrainingModel) -> Tensor:
    """One block: embedding, attention of one head, a residual layer, logits by the embedding again (tied weights)."""
    b = m.b
    ids = b.placeholder("x", "int32", (m.rows, LENGTH))
    labels = b.placeholder("y", "int32", (m.rows, LENGTH))
    table = m.weights("embedding", WORDS, WIDTH)
    x = b.op("GatherV2", table, ids, 0)[0]
    normed = _normalised(m, x)
    query, key, value = (_each(m, normed, f"attention/{part}", WIDTH, WIDTH) for part in ("query", "key", "value"))
    scores = b.op("BatchMatMulV2", query, key, adj_y=True)
    mixed = b.op("BatchMatMulV2", b.op("Softmax", scores), value)[0]
    x = x + mixed
    x = x + _each(m, b.op("Relu", _each(m, _normalised(m, x), "inner", WIDTH, 2 * WIDTH))[0], "outer", 2 * WIDTH, WIDTH)
    flat = b.op("Reshape", x, [-1, WIDTH])
    return m.losses(b.op("MatMul", flat, table, transpose_b=True)[0], b.op("Reshape", labels, [-1])[0])


def _each(m: TrainingModel, x: Tensor, name: str, inputs: int, outputs: int) -> Tensor:
    """A dense layer of each position."""
    flat = m.b.op("Reshape", x, [-1, inputs])[0]
    return m.b.op("Reshape", m.dense(flat, name, inputs, outputs), [-1, LENGTH, outputs])[0]


def _normalised(m: TrainingModel, x: Tensor) -> Tensor:
    b = m.b
    centred = x - b.op("Mean", x, [2], keep_dims=True)[0]
    variance = b.op("Mean", b.op("Square", centred), [2], keep_dims=True)
    small = b.constant(np.asarray(1e-3, "float16" if m.dtype == "mixed" else m.float_type))
    return centred * b.op("Rsqrt", b.op("AddV2", variance, small))[0]


MODELS_BY_NAME: dict[str, Callable[[TrainingModel], Tensor]] = {
    "perceptron": _perceptron,
    "cnn": _cnn,
    "transformer": _transformer,
}
