"""The levels of graphs with loops: which nodes an iteration has, through which nodes values enter and leave it.

Plans fold every level into one node of that around it, bodies of a simulated step are one level each.
A frame is one, however many devices its nodes are on. Enter nodes run outside the frame that they open, Exit nodes
inside the one that they leave. Frame 0 is the root.

    x -> Enter "w" -> Merge -> Switch -> NextIteration (-> Merge)        Switch:0 -> Exit -> y

    frame 0    x, Enter, y
    frame 1    Merge, Switch, NextIteration, Exit      name "w", parent 0
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..arrays import Flags, Integers
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from .joined import JoinedGraph

OUTSIDE = 0
"""the frame of what is outside all loops"""
_OF_LOOPS = frozenset({NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION, NodeClass.LOOP_COND})


@dataclass(slots=True)
class Frame:
    """One frame: its `frame_name`, the number of the frame around it, and the joint numbers of its nodes.

    `merges` are the Merge nodes that a NextIteration leads to: they begin each iteration. `condition` is the LoopCond
    that decides about another iteration, -1 if there is none.
    """

    name: str
    parent: int
    depth: int = 0
    """how many frames are around it"""
    nodes: list[int] = field(default_factory=list)
    enters: list[int] = field(default_factory=list)
    merges: list[int] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    condition: int = -1
    parallel_iterations: int = 1


@dataclass(slots=True)
class Frames:
    """The frames of a joined graph: `of[n]` is the frame that node n runs in; `all[0]` is the root."""

    all: list[Frame]
    of: list[int]
    numbers: dict[tuple[int, str], int]
    """frames by parent and name"""

    def opened_by(self, graph: JoinedGraph, enter: int) -> int:
        """The frame that an Enter leads to."""
        return self.numbers[self.of[enter], frame_name(graph.properties[enter])]

    def after(self, graph: JoinedGraph, n: int) -> int:
        """The frame that a node's outputs are in."""
        match graph.node_class(n):
            case NodeClass.ENTER:
                return self.opened_by(graph, n)
            case NodeClass.EXIT:
                return self.all[self.of[n]].parent
        return self.of[n]

    def crosses(self, graph: JoinedGraph, src: Integers, dst: Integers) -> Flags:
        """Which edges lead into another level, or another iteration: these close a loop."""
        of = np.array(self.of, np.int64)
        crosses: Flags = (of[src] != of[dst]) | graph.closes_loop(src, dst)
        return crosses


def frame_name(enter: NodeProperties) -> str:
    """The `frame_name` of an Enter as text."""
    name: bytes = enter.attrs["frame_name"]
    return name.decode(errors="surrogateescape")


def is_constant_enter(enter: NodeProperties) -> bool:
    """Whether an Enter gives its value to every iteration."""
    return bool(enter.attrs.get("is_constant", False))


def has_frames(graph: JoinedGraph) -> bool:
    """Whether any node opens a frame."""
    return NodeClass.ENTER in graph.classes


def frames_of(graph: JoinedGraph) -> Frames:
    """The frames of a graph whose loops are well formed (`control_flow` says what that is)."""
    frames = Frames([Frame("", -1)], [OUTSIDE] * len(graph), {})
    if not _OF_LOOPS.intersection(graph.classes):
        frames.all[OUTSIDE].nodes = graph.order().tolist()
        return frames
    after = [OUTSIDE] * len(graph)
    for n in graph.order().tolist():
        kind = graph.node_class(n)
        number = frames.of[n] = _frame_of_inputs(graph, n, after)
        frames.all[number].nodes.append(n)
        if kind is NodeClass.ENTER:
            after[n] = _open(frames, graph.properties[n], n)
        elif kind is NodeClass.EXIT:
            frames.all[number].exits.append(n)
            after[n] = frames.all[number].parent
        else:
            after[n] = number
            if kind is NodeClass.LOOP_COND:
                frames.all[number].condition = n
            elif kind is NodeClass.MERGE and any(graph.is_back_edge(src, n) for src, _ in graph.inputs_of(n)):
                frames.all[number].merges.append(n)
    return frames


def _frame_of_inputs(graph: JoinedGraph, n: int, after: list[int]) -> int:
    """The frame of the first input that comes before the node in topological order; the root without inputs."""
    for src, _ in graph.inputs_of(n):
        if not graph.is_back_edge(src, n):
            return after[src]
    for src in graph.controls_of(n):
        if not graph.is_back_edge(src, n):
            return after[src]
    return OUTSIDE


def _open(frames: Frames, properties: NodeProperties, enter: int) -> int:
    """The frame that an Enter leads to, made by the first of its Enters."""
    outer, name = frames.of[enter], frame_name(properties)
    number = frames.numbers.get((outer, name))
    if number is None:
        number = frames.numbers[outer, name] = len(frames.all)
        parallel = int(properties.attrs.get("parallel_iterations", 10))
        frames.all.append(Frame(name, outer, frames.all[outer].depth + 1, parallel_iterations=parallel))
    frames.all[number].enters.append(enter)
    return number
