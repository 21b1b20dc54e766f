"""A linear model of two parameters, with update rules that need more of gradients than single elements.

graph, outputs = LinearModel("resource").graph(by_rows)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partita.graph import Graph, GraphBuilder, gradients
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array

SHAPES = {"a": (5, 7), "b": (7,), "a/slot": (5, 7), "b/slot": (7,)}


@dataclass
class LinearModel:
    """`initial` is "constant", "random" or "fed": by placeholders named "NAME/fed"."""

    kind: str = "resource"
    initial: str = "constant"
    b: GraphBuilder = field(default_factory=GraphBuilder)
    handles: dict[str, Tensor] = field(default_factory=dict)
    reads: dict[str, Tensor] = field(default_factory=dict)
    assigned: list[Operation] = field(default_factory=list)

    def graph(self, rule: Rule) -> Graph:
        """The step: "x" and "y" are fed, "loss" is fetched, "init" and "train" are targets."""
        b = self.b
        x, y = b.placeholder("x", "float64", (None, 5)), b.placeholder("y", "float64", (None, 7))
        parameters = [self.variable("a"), self.variable("b")]
        out = b.op("BiasAdd", b.op("MatMul", x, parameters[0]), parameters[1])
        loss = b.op("Mean", b.op("SquaredDifference", out, y), [0, 1], name="loss")[0]
        found = gradients(b, [loss.name], parameters)
        updates = rule(self, *(b.tensor(g) for g in found if g is not None))
        b.group(*updates, name="train")
        b.group(*self.assigned, name="init")
        return b.graph()

    def feeds(self, step: int) -> Mapping[str, Array]:
        """Twelve rows."""
        draw = np.random.default_rng(step)
        return {"x": draw.normal(size=(12, 5)), "y": draw.normal(size=(12, 7))}

    def number(self, value: Any) -> Tensor:
        """A constant of float64."""
        return self.b.constant(np.asarray(value, np.float64))

    def variable(self, name: str) -> Tensor:
        """The value of a new variable."""
        b, shape = self.b, SHAPES[name]
        if self.initial == "fed":
            value: Any = b.placeholder(f"{name}/fed", "float64", shape)
        elif self.initial == "random":
            value = b.op("RandomUniform", list(shape), dtype="float64", seed=3, seed2=len(name))
        else:
            value = np.random.default_rng(len(name)).normal(size=shape)
        if self.kind == "resource":
            handle = b.op("VarHandleOp", name=name, dtype="float64", shape=shape, attrs={"shared_name": name})[0]
            self.assigned.append(b.op("AssignVariableOp", handle, value, name=f"{name}/init"))
            read = b.op("ReadVariableOp", handle, name=f"{name}/read", dtype="float64")[0]
        else:
            handle = b.variable(name, "float64", shape)
            self.assigned.append(b.op("Assign", handle, value, name=f"{name}/init"))
            read = b.identity(handle, name=f"{name}/read")
        self.handles[name], self.reads[name] = handle, read
        return read

    def momentum(self, *grads: Tensor) -> list[Operation]:
        """The optimizer's op, with a slot for each parameter."""
        found = []
        for name, grad in zip(("a", "b"), grads, strict=True):
            self.variable(f"{name}/slot")
            op = "ResourceApplyMomentum" if self.kind == "resource" else "ApplyMomentum"
            found.append(self.b.op(op, self.handles[name], self.handles[f"{name}/slot"], 0.1, grad, 0.9))
        return found


Rule = Callable[..., list[Operation]]
"""from the model and the gradients of both parameters to the updates"""


def plain(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Gradients as they are."""
    return m.momentum(a, b)


def by_matrix(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Products of gradients, as orthogonalising optimizers have them."""
    square = m.b.op("MatMul", a, a, transpose_a=True)
    return m.momentum(a + m.b.op("MatMul", a, square)[0] * m.number(0.1), b)


def by_parameter(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Products of parameters, and decay."""
    value = m.reads["a"]
    square = m.b.op("MatMul", value, value, transpose_a=True)
    return m.momentum(a + m.b.op("MatMul", value, square)[0] * m.number(0.01), b + m.reads["b"] * m.number(0.01))


def by_rows(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Each row by its norm."""
    norm = m.b.op("Sqrt", m.b.op("Sum", m.b.op("Square", a), [1], keep_dims=True))[0]
    return m.momentum(a / (norm + m.number(1)), b)


def by_reductions(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Every reduction to one element, some keep their axes."""
    g = m.b
    most, least = g.op("Max", g.op("Abs", a), [0, 1])[0], g.op("Min", b, [0], keep_dims=True)[0]
    mean = g.op("Mean", g.op("Square", a), [0, 1], keep_dims=True)[0]
    return m.momentum(a / (most + m.number(1)) + a * mean, b * g.op("Prod", g.op("Cos", b), [0])[0] + least)


def if_finite(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """As loss scaling does it: no update unless all gradients are finite; and another sign if one is positive."""
    g = m.b
    each = [g.op("All", g.op("IsFinite", x), axes) for x, axes in ((a, [0, 1]), (b, [0]))]
    finite = g.op("LogicalAnd", *each)
    a, b = (g.op("SelectV2", finite, x, g.op("ZerosLike", x))[0] for x in (a, b))
    positive = g.op("Any", g.op("Greater", b, m.number(0)), [0])
    return m.momentum(a, g.op("SelectV2", positive, b, g.op("Neg", b))[0])


def with_decay_first(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Decay is assigned before, which no gradient enters."""
    found = []
    for name, grad in (("a", a), ("b", b)):
        read = m.b.op("ReadVariableOp", m.handles[name], dtype="float64")[0]
        decayed = m.b.op("AssignSubVariableOp", m.handles[name], read * m.number(0.01))
        with m.b.control_dependencies(decayed):
            found.append(m.b.op("AssignSubVariableOp", m.handles[name], grad * m.number(0.1)))
    return found


def with_constraint(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """Columns have a norm of at most 1 after each update."""
    found, g = [], m.b
    for name, grad in (("a", a), ("b", b)):
        updated = g.op("ResourceApplyGradientDescent", m.handles[name], 0.5, grad)
        with g.control_dependencies(updated):
            value = g.op("ReadVariableOp", m.handles[name], dtype="float64")[0]
            norm = g.op("Sqrt", g.op("Sum", g.op("Square", value), [0], keep_dims=True))
            new = value / g.op("Maximum", norm, m.number(1))[0]
            found.append(g.op("AssignVariableOp", m.handles[name], new))
    return found


def by_columns(m: LinearModel, a: Tensor, b: Tensor) -> list[Operation]:
    """A rate for each column, which is broadcast over a matrix and has the shape of a vector."""
    rates = m.number(np.linspace(0.1, 0.2, 7))
    return [m.b.op("AssignSubVariableOp", m.handles[name], grad * rates) for name, grad in (("a", a), ("b", b))]


ANY_KIND: tuple[Rule, ...] = (plain, by_matrix, by_parameter, by_rows, by_reductions, if_finite)
OF_RESOURCES: tuple[Rule, ...] = (with_decay_first, with_constraint, by_columns)
