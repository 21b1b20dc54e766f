"""Random programs of nested loops and conditionals, with nodes on random devices.

Loops end after a few iterations and are built like those of `tf.while_loop`, conditionals like those of `tf.cond`.
Values are float32 scalars. Fetches are in the root frame; those from inside a conditional may be dead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.protos import GraphDef
from tests.strategies import cpu

MOST_ITERATIONS = 4
DEEPEST = 3
UNARY = ("Neg", "Identity", "Tanh")


@dataclass(frozen=True)
class Program:
    """A graph with loops, and a request whose fetches may be dead."""

    graph_def: GraphDef
    feeds: dict[str, Any]
    fetches: tuple[str, ...]


@dataclass
class _Scope:
    """The values visible at some point. All are alive exactly if `pivot` is; without a pivot they are always alive."""

    depth: int
    values: list[Tensor]
    pivot: Tensor | None = None
    loose: list[Tensor] = field(default_factory=list)  # in the same frame, alive or not


class _Writer:
    def __init__(self, random: Random, devices: int, unary: Sequence[str]) -> None:
        self.unary_ops = unary
        self.random = random
        self.devices = devices
        self.builder = GraphBuilder()
        self.num_frames = 0
        self.statements: list[Callable[[_Scope], None]] = [self.unary, self.binary, self.constant]

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Operation:
        """A node on some device."""
        return self.builder.op(op, *inputs, device=cpu(self.random.randrange(self.devices)), **attrs)

    def number(self, value: Any, pivot: Tensor | None) -> Tensor:
        """A constant that is alive when `pivot` is."""
        dtype = "int32" if isinstance(value, np.int32) else "float32"
        return self.op("Const", dtype=dtype, value=value, control=[] if pivot is None else [pivot])[0]

    def value(self, scope: _Scope) -> Tensor:
        return self.random.choice(scope.values)

    def some(self, scope: _Scope, most: int) -> list[Tensor]:
        """At least one value; all are different."""
        return self.random.sample(scope.values, min(len(scope.values), self.random.randint(1, most)))

    def block(self, scope: _Scope, most: int) -> None:
        """Adds a few statements to a scope."""
        compound = [self.conditional, self.loop] if scope.depth < DEEPEST else []
        for _ in range(self.random.randint(0, most)):
            self.random.choice([*self.statements, *compound])(scope)

    def unary(self, scope: _Scope) -> None:
        control = [self.value(scope)] if self.random.random() < 0.2 else []
        op = self.random.choice(self.unary_ops)
        scope.values.append(self.op(op, self.value(scope), control=control)[0])

    def binary(self, scope: _Scope) -> None:
        op = self.random.choice(["Sub", "Maximum"])
        scope.values.append(self.op(op, self.value(scope), self.value(scope))[0])

    def constant(self, scope: _Scope) -> None:
        scope.values.append(self.number(np.float32(self.random.randint(-3, 3)), scope.pivot))

    def predicate(self, scope: _Scope) -> Tensor:
        """A comparison of two values of a scope, which differs between runs."""
        bound = self.number(np.float32(self.random.uniform(-1, 1)), scope.pivot)
        return self.op("Less", self.value(scope), bound)[0]

    def conditional(self, scope: _Scope) -> None:
        """A Switch for each value, two branches, and a Merge for each pair of results."""
        predicate, captured = self.predicate(scope), self.some(scope, 2)
        switches = [self.op("Switch", value, predicate) for value in captured]
        results = []
        for side in (0, 1):
            pivot = self.op("Identity", switches[0][side])[0]
            branch = _Scope(scope.depth + 1, [pivot, *(switch[side] for switch in switches)], pivot)
            self.block(branch, 3)
            results.append(branch)
        for _ in range(self.random.randint(0, 2)):
            merge = self.op("Merge", [self.value(branch) for branch in results])
            scope.values.append(merge[0])
            if self.random.random() < 0.3:
                scope.values.append(self.op("Cast", merge[1], SrcT="int32", DstT="float32")[0])
        for branch in results:
            scope.loose += [*branch.values[-2:], *branch.loose]

    def loop(self, scope: _Scope) -> None:
        """A few variables and a counter; values from outside enter as constants."""
        self.num_frames += 1
        frame: dict[str, Any] = {
            "frame_name": f"frame{self.num_frames}",
            "parallel_iterations": self.random.choice([1, 2, 10]),
        }
        limit = self.number(np.int32(self.random.randint(0, MOST_ITERATIONS)), scope.pivot)
        starts = [*self.some(scope, 2), self.number(np.int32(0), scope.pivot)]
        entered = [self.op("Enter", start, **frame)[0] for start in starts]
        constant = [self.op("Enter", value, is_constant=True, **frame)[0] for value in self.some(scope, 2)]
        limit = self.op("Enter", limit, is_constant=True, **frame)[0]
        merges = [self.op("Merge", [enter, self.builder.later(enter.dtype)]) for enter in entered]
        go_on = self.condition([merge[0] for merge in merges], constant, limit)
        switches = [self.op("Switch", merge[0], go_on) for merge in merges]
        inside = [self.op("Identity", switch[1])[0] for switch in switches]
        body = _Scope(scope.depth + 1, [*inside[:-1], *constant], inside[0])
        if self.random.random() < 0.3:
            merge_input = self.op("Cast", merges[0][1], SrcT="int32", DstT="float32")[0]
            body.values.append(merge_input)
        self.block(body, 4)
        following = [self.op("Identity", self.value(body), control=[inside[0]])[0] for _ in inside[:-1]]
        following.append(self.op("AddV2", inside[-1], self.number(np.int32(1), inside[0]))[0])
        for merge, value in zip(merges, following, strict=True):
            self.builder.close_loop(merge, self.op("NextIteration", value)[0])
        exits = [self.op("Exit", switch[0])[0] for switch in switches]
        scope.values += [*exits[:-1], self.op("Cast", exits[-1], SrcT="int32", DstT="float32")[0]]

    def condition(self, variables: list[Tensor], constant: list[Tensor], limit: Tensor) -> Tensor:
        """The predicate of a loop: it ends after some iterations, perhaps earlier by another comparison."""
        *floats, counter = variables
        below: Tensor = self.op("Less", counter, limit)[0]
        if self.random.random() < 0.4:
            bound = self.random.choice(constant)
            if self.random.random() < 0.5:
                bound = self.op("Sub", bound, self.number(np.float32(2), floats[0]))[0]
            also = self.op("LessEqual", bound, self.op("Maximum", floats[0], bound)[0])[0]
            if self.random.random() < 0.5:
                also = self.op("Less", self.op("Tanh", floats[0])[0], bound)[0]
            below = self.op("LogicalAnd", below, also)[0]
        return self.op("LoopCond", below)[0]


def program(seed: int, devices: int, size: int, unary: Sequence[str] = UNARY) -> Program:
    """The program of a seed: up to `size` statements in its root, on up to `devices` CPUs, `unary` ops among them."""
    random = Random(seed)
    writer = _Writer(random, devices, unary)
    inputs = [writer.builder.placeholder(name, "float32", (), device=cpu(0)) for name in ("x", "y")]
    scope = _Scope(0, list(inputs))
    for _ in range(random.randint(0, size)):
        random.choice([*writer.statements, writer.conditional, writer.loop, writer.loop])(scope)
    writer.loop(scope)
    candidates = [*scope.values[2:], *scope.loose]
    fetches = dict.fromkeys(tensor.name for tensor in random.sample(candidates, min(len(candidates), 4)))
    feeds = {tensor.name: np.float32(random.randint(-3, 3)) for tensor in inputs}
    return Program(writer.builder.graph_def(), feeds, tuple(fetches))


@st.composite
def programs(draw: st.DrawFn, devices: int = 4, size: int = 5) -> Program:
    """Programs over one to `devices` CPUs with at least one loop."""
    return program(draw(st.integers(0, 2**32)), draw(st.integers(1, devices)), draw(st.integers(0, size)))
