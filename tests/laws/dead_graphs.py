"""Drawn graphs with dead tensors: Switches on a few fed predicates, what depends on them over devices, and what goes on
with dead inputs: Merges, and ControlTriggers, each with control edges from anywhere.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.protos import GraphDef

SIZE = 2000
PREDICATES = ("p", "q")


class DeadCase(NamedTuple):
    """A graph, whose fetch "y" is always live, and the value of each predicate."""

    graph: GraphDef
    taken: dict[str, bool]

    @property
    def feeds(self) -> dict[str, Any]:
        """Values of all feeds."""
        return {"x": np.full(SIZE, 0.5, np.float32), **{name: np.bool_(side) for name, side in self.taken.items()}}


def dead_case(seed: int, devices: tuple[str, ...], steps: int = 14) -> DeadCase:
    """The graph of a seed; its nodes are anywhere on `devices`."""
    random = Random(seed)
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (SIZE,), device=devices[0])
    predicates = {name: b.placeholder(name, "bool", (), device=random.choice(devices)) for name in PREDICATES}
    taken = {name: random.random() < 0.5 for name in PREDICATES}
    values: list[tuple[Tensor, bool]] = [(x, True)]  # and whether they are live
    nodes: list[str] = []
    for number in range(steps):
        value, is_live = random.choice(values[-6:])
        other, other_is_live = random.choice(values)
        controls = random.sample(nodes, random.randint(0, 1)) if nodes else []
        name = f"n{number}"
        with b.device(random.choice(devices)):
            match random.choice(("switch", "switch", "exp", "add", "merge", "trigger")):
                case "switch":
                    predicate = random.choice(PREDICATES)
                    sides = b.op("Switch", value, predicates[predicate], name=name)
                    values += [(sides[k], is_live and taken[predicate] == bool(k)) for k in range(2)]
                case "exp":
                    values.append((b.op("Exp", value, name=name)[0], is_live))
                case "add":
                    values.append((b.op("AddV2", value, other, name=name)[0], is_live and other_is_live))
                case "merge" if is_live != other_is_live:  # of two live inputs the first to come would win
                    values.append((b.op("Merge", [value, other], name=name, control=controls)[0], True))
                case "trigger" if controls:
                    b.op("ControlTrigger", name=name, control=controls)
                    values.append((b.op("Exp", x, name=f"{name}/after", control=[name])[0], True))
                case _:
                    continue
        nodes.append(name)
    for name in PREDICATES:
        b.op("Switch", x, predicates[name], name=f"asks_{name}", device=devices[0])  # so that every case asks both
    ends = random.sample(nodes, min(3, len(nodes)))
    b.op("ControlTrigger", name="ends", control=[*ends, *(f"asks_{name}" for name in PREDICATES)], device=devices[0])
    live = [value for value, is_live in values if is_live]
    b.op("Identity", b.op("AddN", live[-4:])[0], name="y", control=["ends"], device=devices[-1])
    return DeadCase(b.graph_def(), taken)
