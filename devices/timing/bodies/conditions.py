"""The conditions of a graph: what its Switch nodes ask for, under which names, and the answer as far as it is known.

All Switch nodes whose predicates come from one tensor ask one condition, on whatever devices they are:

    p -> pred_id -> Switch(x, pred_id)          names "p", "pred_id"
    If "c" of p, lowered: c/x/_3 = Switch(x, p)  name "c" too, which comes first

The predicate of a loop is none of them: how often loops run decides that (`choices`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ....graph.analysis.counters import NEVER, Number, Truth, Value
from ....graph.analysis.fed_nodes import fed_tensor
from ....graph.analysis.joined import JoinedGraph
from ....graph.analysis.trip_counts import Count, TripCounts
from ....graph.edge_ends import Output
from ....graph.ops.record import NodeClass

if TYPE_CHECKING:
    from .choices import Choices
    from .paths import CallPath

OF_LOOP = -1
"""in place of a condition: the predicate is that of the loop"""
Answer: TypeAlias = "Count | Truth | None"
"""a branch, one per turn, or one that depends on the number of the iteration; None is unknown"""

_THROUGH = (NodeClass.IDENTITY, NodeClass.ENTER, NodeClass.SWITCH)


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: the tensor that answers it, the number of branches, and the names that it has, best first."""

    source: Output
    num_branches: int
    names: tuple[str, ...]


class Conditions:
    """The conditions of a graph: `all`, and by Switch node its index there, or OF_LOOP."""

    def __init__(self, graph: JoinedGraph) -> None:
        self.graph = graph
        self.all: list[Condition] = []
        self.of: dict[int, int] = {}
        found: dict[tuple[Output, int], int] = {}
        names: list[list[str]] = []
        of_switch = {switch: name for name, lowered in graph.lowered.items() for switch in lowered.switches}
        for n in np.flatnonzero(graph.of_class(NodeClass.SWITCH)).tolist():
            source, passed = _origin(graph, graph.inputs_of(n)[1])
            if graph.node_class(source[0]) is NodeClass.LOOP_COND:
                self.of[n] = OF_LOOP
                continue
            key = source, len(graph.properties[n].output_types)
            if key not in found:
                found[key] = len(names)
                names.append([_shown(graph, source), *passed])
            self.of[n] = found[key]
            lowered = of_switch.get(graph.names[n], "")
            if lowered and lowered not in names[found[key]]:
                names[found[key]].insert(0, lowered)
        for (source, num_branches), number in found.items():
            self.all.append(Condition(source, num_branches, tuple(dict.fromkeys(names[number]))))

    def answers(self, trips: TripCounts, choices: Choices, path: CallPath) -> list[Answer]:
        """The answer of every condition; `path` begins its names."""
        answers: list[Answer] = []
        for condition in self.all:
            names = [path.name(name) for name in condition.names]
            answer: Answer = choices.branch(names, condition.num_branches)
            if answer is None:
                frame = trips.frames.after(self.graph, condition.source[0])
                value = trips.value(frame, condition.source) if frame else trips.in_call(condition.source)
                answer = branch_of(value, condition.num_branches)
            answers.append(answer)
        return answers


def predicate_names(graph: JoinedGraph, source: Output) -> list[str]:
    """The names that a predicate has: of the node that yields it, then of those that pass it on."""
    origin, passed = _origin(graph, source)
    return list(dict.fromkeys([_shown(graph, origin), *passed]))


def _origin(graph: JoinedGraph, source: Output) -> tuple[Output, list[str]]:
    """Where a predicate comes from, and the names of the nodes that pass it on."""
    passed: list[str] = []
    while True:
        n = source[0]
        if graph.sender[n] >= 0:
            source = graph.inputs_of(int(graph.sender[n]))[0]
        elif graph.node_class(n) in _THROUGH:
            passed.append(graph.names[n])
            source = graph.inputs_of(n)[0]
        else:
            return source, passed


def _shown(graph: JoinedGraph, source: Output) -> str:
    """The name of the node that yields a tensor; that of the fed one for a feed."""
    name = graph.names[source[0]]
    fed = fed_tensor(name) if graph.op(source[0]) == "_Arg" else None
    return name if fed is None else fed.node


def branch_of(value: Value, num_branches: int) -> Answer:
    """The branch that a predicate or index chooses: an index that no branch has is that of the last one."""
    if isinstance(value, Truth):
        fixed = value.at(0)
        return value if fixed != value else int(fixed != NEVER)
    if isinstance(value, Number) and value.is_constant and isinstance(value.start, int):
        return value.start if 0 <= value.start < num_branches else num_branches - 1
    return None
