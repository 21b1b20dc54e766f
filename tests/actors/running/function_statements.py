"""The statements of a random program that call no function: arithmetic, variables, colocated nodes, odd loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from tests.strategies import cpu

_UNARY = ("Neg", "Identity", "Tanh")
_BINARY = ("Sub", "Maximum", "Mul")


@dataclass
class Scope:
    """The root or a function body while it is built. `last` is the node that accessed a variable last."""

    builder: GraphBuilder
    depth: int
    values: list[Tensor]
    handles: list[Tensor]
    last: Operation | None = None
    known: set[str] = field(default_factory=set)

    @property
    def control(self) -> list[Operation]:
        """The control inputs of the next access to a variable."""
        return [] if self.last is None else [self.last]


class Statements:
    """Adds nodes on random devices to a scope. Requests conflict only with `conflicting`."""

    def __init__(self, random: Random, devices: int, *, conflicting: bool) -> None:
        self.random = random
        self.devices = devices
        self.conflicting = conflicting
        simple = [self.unary, self.binary, self.constant, self.colocated]
        self.statements: list[Callable[[Scope], None]] = [*simple, self.read, self.assign, self.assign, self.odd_loop]

    def op(self, scope: Scope, op: str, *inputs: Any, follows: bool = False, **keywords: Any) -> Operation:
        """A node that requests a random device; none if it `follows` its inputs and requests must not conflict."""
        k = self.random.randrange(self.devices)
        device = self.random.choice(["", "", cpu(k), f"/device:CPU:{k}"])
        return scope.builder.op(op, *inputs, device="" if follows and not self.conflicting else device, **keywords)

    def value(self, scope: Scope) -> Tensor:
        return self.random.choice(scope.values)

    def some(self, scope: Scope, most: int) -> list[Tensor]:
        return [self.value(scope) for _ in range(self.random.randint(1, most))]

    def number(self, scope: Scope, value: float) -> Tensor:
        return self.op(scope, "Const", dtype="float32", value=np.float32(value))[0]

    def some_handles(self, scope: Scope, most: int) -> list[Tensor]:
        return [self.random.choice(scope.handles) for _ in range(self.random.randint(0, most))] if scope.handles else []

    def touches(self, scope: Scope, op: str, *inputs: Any, follows: bool = True, **keywords: Any) -> Operation:
        """A node that runs after all earlier accesses to variables."""
        scope.last = self.op(scope, op, *inputs, control=scope.control, follows=follows, **keywords)
        return scope.last

    def unary(self, scope: Scope) -> None:
        scope.values.append(self.op(scope, self.random.choice(_UNARY), self.value(scope))[0])

    def binary(self, scope: Scope) -> None:
        op = self.random.choice(_BINARY)
        scope.values.append(self.op(scope, op, self.value(scope), self.value(scope))[0])

    def constant(self, scope: Scope) -> None:
        scope.values.append(self.number(scope, self.random.randint(-3, 3)))

    def colocated(self, scope: Scope) -> None:
        """A node on the device of another node."""
        k = self.random.randrange(self.devices)
        leader = scope.builder.op("Neg", self.value(scope), device=cpu(k))
        attrs = {"_class": [f"loc:@{leader.name}".encode()]}
        device = "" if self.conflicting else cpu(k)
        scope.values.append(scope.builder.op("Tanh", self.value(scope), device=device, attrs=attrs)[0])

    def read(self, scope: Scope) -> None:
        if scope.handles:
            handle = self.random.choice(scope.handles)
            scope.values.append(self.touches(scope, "ReadVariableOp", handle, dtype="float32")[0])

    def assign(self, scope: Scope) -> None:
        if scope.handles:
            op = self.random.choice(["AssignVariableOp", "AssignAddVariableOp"])
            self.touches(scope, op, self.random.choice(scope.handles), self.value(scope), dtype="float32")

    def odd_loop(self, scope: Scope) -> None:
        """A loop for the interpreter: NextIteration is input 0 of its Merge. Halves x while it is above 1."""
        if self.random.random() < 0.7:
            return
        frame: dict[str, Any] = {"frame_name": scope.builder.unique_name("odd"), "parallel_iterations": 10}
        bounded = self.op(scope, "Tanh", self.value(scope))[0]
        start = self.op(scope, "Mul", bounded, self.number(scope, 8.0))[0]
        enter = self.op(scope, "Enter", start, **frame)[0]
        limit = self.op(scope, "Enter", self.number(scope, 1.0), is_constant=True, **frame)[0]
        merge = self.op(scope, "Merge", [scope.builder.later("float32"), enter])
        go_on = self.op(scope, "LoopCond", self.op(scope, "Less", limit, merge[0])[0])[0]
        switch = self.op(scope, "Switch", merge[0], go_on)
        half = self.op(
            scope, "Mul", switch[1], self.op(scope, "Enter", self.number(scope, 0.5), is_constant=True, **frame)[0]
        )
        scope.builder.close_loop(merge, self.op(scope, "NextIteration", half[0])[0], port=0)
        scope.values.append(self.op(scope, "Exit", switch[0])[0])
