"""Graphs for the tests of the actors: random ones with conditionals and placements, and a few by hand.

A `Conditional` is acyclic, and at most one input of each Merge is alive in any run. Values are small float32 scalars.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef
from tests.strategies import cpu

NUM_PREDICATES = 3
Guards = frozenset[tuple[int, bool]]
"""(predicate, the value it must have) for a tensor to be alive"""


@dataclass(frozen=True)
class Conditional:
    """A graph with Switch and Merge; `feeds` feed all placeholders, `fetches` may be dead."""

    graph_def: GraphDef
    feeds: dict[str, Any]
    fetches: tuple[str, ...]


@dataclass
class _Value:
    tensor: Tensor
    guards: Guards


class _Drawing:
    """A graph while it is drawn."""

    def __init__(self, draw: st.DrawFn, devices: int) -> None:
        self.draw = draw
        self.devices = devices
        self.builder = GraphBuilder()
        self.predicates = [self.builder.placeholder(f"p{i}", "bool", (), device=cpu(0)) for i in range(NUM_PREDICATES)]
        self.values = [_Value(self.builder.placeholder("x", "float32", (), device=cpu(0)), frozenset())]
        self.node_guards: dict[str, Guards] = {"x": frozenset()}

    def value(self) -> _Value:
        return self.draw(st.sampled_from(self.values))

    def add(self, op: str, *inputs: Any, guards: Guards, **attrs: Any) -> None:
        """A node on some device, perhaps with a control input, whose guards it then has too."""
        control = [self.value()] if self.draw(st.integers(0, 4)) == 0 else []
        where = cpu(self.draw(st.integers(0, self.devices - 1)))
        operation = self.builder.op(op, *inputs, device=where, control=[v.tensor for v in control], **attrs)
        if op != "Merge":  # which does not care whether its control inputs are dead
            guards = guards.union(*[self.node_guards[v.tensor.node] for v in control])
        self.node_guards[operation.name] = guards
        if op == "Switch":
            predicate = int(inputs[1].node.removeprefix("p"))
            self.values += [_Value(operation[side], guards | {(predicate, bool(side))}) for side in (0, 1)]
        else:
            self.values.append(_Value(operation[0], guards))

    def unary(self) -> None:
        value = self.value()
        self.add(self.draw(st.sampled_from(["Neg", "Identity", "Tanh"])), value.tensor, guards=value.guards)

    def binary(self) -> None:
        a, b = self.value(), self.value()
        self.add(self.draw(st.sampled_from(["Sub", "Maximum"])), a.tensor, b.tensor, guards=a.guards | b.guards)

    def constant(self) -> None:
        number = np.float32(self.draw(st.integers(-3, 3)))
        self.add("Const", guards=frozenset(), dtype="float32", value=number)

    def switch(self) -> None:
        value, predicate = self.value(), self.draw(st.sampled_from(self.predicates))
        self.add("Switch", value.tensor, predicate, guards=value.guards)

    def merge(self) -> None:
        """Merges a drawn value with one that is never alive together with it, if there is one."""
        a = self.value()
        others = [b for b in self.values if any((p, not side) in b.guards for p, side in a.guards)]
        if others:
            b = self.draw(st.sampled_from(others))
            self.add("Merge", [a.tensor, b.tensor], guards=a.guards & b.guards)


@st.composite
def conditionals(draw: st.DrawFn, devices: int = 3) -> Conditional:
    """Random graphs with conditionals over up to `devices` CPUs, and a request that may fetch any of their tensors."""
    drawing = _Drawing(draw, devices)
    steps = [drawing.unary, drawing.binary, drawing.constant, drawing.switch, drawing.switch, drawing.merge]
    drawing.unary()
    for _ in range(draw(st.integers(0, 25))):
        draw(st.sampled_from(steps))()
    tensors = tuple(value.tensor.name for value in drawing.values[1:])
    feeds: dict[str, Any] = {f"p{i}:0": np.bool_(draw(st.booleans())) for i in range(NUM_PREDICATES)}
    feeds["x:0"] = np.float32(draw(st.integers(-3, 3)))
    fetches = tuple(draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=4)))
    return Conditional(drawing.builder.graph_def(), feeds, fetches)
