"""Which nodes of a level run: a level is what is outside all loops, or one iteration of a loop.

A node with a dead input does not run, nor what depends on it. That begins at Switch nodes: the count of a loop says
whether its predicate is true in an iteration, the answers of conditions say which side of other Switch nodes is dead.
So what runs is known before it is played, as a *variant* of the level:

    while i < 3: x = x * x          variant "goes on"      Merge, Less, LoopCond, Switch, Mul, NextIteration
                                    variant of the end     Merge, Less, LoopCond, Switch, Exit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ....graph.analysis.counters import NEVER, Truth
from ....graph.analysis.joined import JoinedGraph
from ....graph.analysis.levels import OUTSIDE, Frame, Frames
from ....graph.analysis.trip_counts import Count
from ....graph.edge_ends import Output
from ....graph.ops.record import NodeClass
from .conditions import OF_LOOP, Answer, Conditions

# -1 in place of the port of an output stands for the node itself.
_DeadExits = Callable[[int, set[Output]], set[int]]


class Variant(NamedTuple):
    """Which nodes of a level run: `sides` has the branch per condition that the level asks, None if it is unknown.

    `goes_on` says whether another iteration follows, `is_first` whether it is the first one; `dead` has the Enters of
    the frame that do not run.
    """

    goes_on: bool
    is_first: bool
    sides: tuple[int | None, ...]
    dead: frozenset[int]


class Level:
    """One frame of a graph, or the root."""

    def __init__(self, number: int, frames: Frames, graph: JoinedGraph, conditions: Conditions) -> None:
        self.number = number
        self.frames = frames
        self.frame: Frame = frames.all[number]
        self.graph = graph
        self.conditions = conditions
        self.asked = sorted({conditions.of[n] for n in self.frame.nodes if conditions.of.get(n, OF_LOOP) != OF_LOOP})
        self._side_of = {condition: k for k, condition in enumerate(self.asked)}
        self.merges = set(self.frame.merges)

    def dead_outputs(self, variant: Variant, exits_of: _DeadExits) -> set[Output]:
        """Outputs of this level that are dead; -1 of a node that does not run."""
        graph, dead = self.graph, set[Output]()
        for n in self.frame.nodes:  # in topological order
            kind, sources = graph.node_class(n), graph.inputs_of(n)
            outside = [self.is_dead(source, dead, variant, exits_of) for source in sources]
            if n in self.merges:
                is_dead = outside[0] if variant.is_first else False
            elif kind is NodeClass.MERGE:
                is_dead = all(outside)
            elif kind is NodeClass.CONTROL_TRIGGER:
                is_dead = False
            else:
                is_dead = any(outside)
            if kind is not NodeClass.CONTROL_TRIGGER and kind is not NodeClass.MERGE:
                is_dead = is_dead or any(
                    self.is_dead((src, -1), dead, variant, exits_of) for src in graph.controls_of(n)
                )
            sender = int(graph.sender[n])
            if is_dead or (sender >= 0 and (sender, -1) in dead):
                dead.update((n, output) for output in range(-1, len(graph.properties[n].output_types)))
            elif kind is NodeClass.SWITCH:
                dead.update((n, side) for side in self._dead_sides(n, variant))
        return dead

    def is_dead(self, source: Output, dead: set[Output], variant: Variant, exits_of: _DeadExits) -> bool:
        """Whether an output that a node of this level reads is dead; `dead` has those of this level."""
        n = source[0]
        if self.frames.of[n] == self.number:
            return source in dead and self.graph.node_class(n) is not NodeClass.NEXT_ITERATION
        if self.frames.of[n] == self.frame.parent and self.graph.node_class(n) is NodeClass.ENTER:
            return n in variant.dead
        return n in exits_of(self.frames.of[n], dead)  # an Exit of a loop in this level

    def _dead_sides(self, switch: int, variant: Variant) -> list[int]:
        condition = self.conditions.of[switch]
        side = int(variant.goes_on) if condition == OF_LOOP else variant.sides[self._side_of[condition]]
        count = len(self.graph.properties[switch].output_types)
        return [] if side is None else [other for other in range(count) if other != side]

    def sides(self, answers: Sequence[Answer], turn: int, iteration: int) -> tuple[int | None, ...]:
        """The branches of the conditions of this level, in one iteration."""
        return tuple(side(answers[condition], turn, iteration) for condition in self.asked)


def side(answer: Answer, turn: int, iteration: int) -> int | None:
    """The branch that an answer means for one turn and iteration."""
    if isinstance(answer, Truth):
        return int(answer.at(iteration) != NEVER)
    return answer if answer is None or isinstance(answer, int) else answer[min(turn, len(answer) - 1)]


class Liveness:
    """The levels of a graph, by frame, and what is dead in their variants."""

    def __init__(self, graph: JoinedGraph, frames: Frames, conditions: Conditions) -> None:
        self.graph = graph
        self.frames = frames
        self.levels = [Level(number, frames, graph, conditions) for number in range(len(frames.all))]
        self._dead: dict[tuple[int, Variant], set[Output]] = {}

    def dead_outputs(self, number: int, variant: Variant) -> set[Output]:
        """The outputs of a level that are dead."""
        key = number, variant
        if key not in self._dead:
            self._dead[key] = self.levels[number].dead_outputs(variant, self.dead_exits)
        return self._dead[key]

    def dead_exits(self, number: int, dead: set[Output]) -> set[int]:
        """The Exits of a loop that give nothing to the level around, in which the outputs `dead` are dead."""
        level = self.levels[number]
        last = Variant(False, True, (None,) * len(level.asked), self.dead_enters(number, dead))
        inside = self.dead_outputs(number, last)
        return {node for node in level.frame.exits if (node, -1) in inside}

    def dead_enters(self, number: int, dead: set[Output]) -> frozenset[int]:
        """The Enters of a frame that do not run, for the dead outputs of the level around."""
        return frozenset(enter for enter in self.levels[number].frame.enters if (enter, -1) in dead)

    def never_live(self, counts: Sequence[Count], answers: Sequence[Answer]) -> set[int]:
        """The nodes that run in no iteration."""
        fixed = [answer if isinstance(answer, int) else None for answer in answers]
        outside: dict[int, set[Output]] = {}  # by frame, the dead outputs of its going on
        never = set[int]()
        for number, level in enumerate(self.levels):
            around = outside.get(level.frame.parent, set())
            enters = frozenset() if number == OUTSIDE else self.dead_enters(number, around)
            sides = tuple(fixed[condition] for condition in level.asked)
            runs = number == OUTSIDE or counts[number] != 0
            variants = [Variant(goes_on, True, sides, enters) for goes_on in ((True, False) if runs else (False,))]
            dead = [self.dead_outputs(number, variant) for variant in variants]
            outside[number] = dead[0]
            never.update(n for n in level.frame.nodes if all((n, -1) in outputs for outputs in dead))
            if number and all(enter in enters or enter in never for enter in level.frame.enters):
                never.update(level.frame.nodes)
        return never
