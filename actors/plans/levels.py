"""A partition as levels: loops folded into single nodes, and one acyclic graph per loop for what an iteration does.

A node is in the level of its frame. Where a loop is inside, a level has one node instead, whose inputs enter the loop
and whose outputs leave it. So every level is acyclic.

    partition     x -> Enter -> Merge -> Switch -> body -> NextIteration (-> Merge)         Switch:0 -> Exit -> y
    outer level   x -> Enter -> LOOP -> Exit -> y              Enter and Exit only pass on
    its own       _Arg -> Switch -> body -> NextIteration -> _Retval 0                 Switch:0 -> _Retval 1 (the exit)

A node whose outputs come some time after its inputs, a loop or a kernel that waits for something, is a `Deferred` node.

Only loops built as `tf.while_loop` builds them are folded: each Merge that a NextIteration leads to joins it with
one Enter; constant Enters lead anywhere else. Others raise `Unfoldable`; the tagged-frame interpreter runs those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PartitaError, UnimplementedError
from ...graph.analysis.control_flow import build_control_flow_info
from ...graph.analysis.joined import JoinedGraph
from ...graph.analysis.levels import OUTSIDE, Frames, frames_of
from ...graph.columns import SINK_ID
from ...graph.ops.properties import NodeProperties, properties_of
from ...graph.ops.registry import lookup_op, unlisted
from .columns import Nodes, NumberedEdges, OrderedGraph, ordered_columns
from .roles import Role, role_of

if TYPE_CHECKING:
    from ...graph.dtypes import DataType
    from ...graph.graph import Graph

ROOT = ""
_DEFERRED = unlisted("_Deferred")
_SYNTHETIC = -1  # the id of nodes that the graph does not have


class Unfoldable(UnimplementedError):
    """A loop that is not built as `tf.while_loop` builds them. It can be interpreted, if the uncut graph is there."""

    def __init__(self, node: str) -> None:
        """`node` is where the loop is unusual."""
        super().__init__(
            f"the loop at node {node!r} is not built as tf.while_loop builds them, and only a session on one task runs "
            "such a loop; give each Merge one Enter and one NextIteration, in this order",
            node=node,
        )


class Deferred(NodeProperties):
    """Properties of a node whose outputs come later: those of `node`, a kernel that waits, or of the loop `frame`."""

    __slots__ = ("frame", "node")

    def __init__(self, node: NodeProperties) -> None:
        super().__init__(_DEFERRED, (), node.input_types, node.output_types)
        self.node = node
        self.frame = ROOT

    @property
    def op(self) -> str:
        """The op of the node it stands for."""
        return self.node.op


def _loop_properties(frame: str, takes: tuple[DataType, ...], gives: tuple[DataType, ...]) -> Deferred:
    loop = Deferred(NodeProperties(lookup_op("While"), (), takes, gives))
    loop.frame = frame
    return loop


@dataclass(frozen=True, slots=True)
class Loop:
    """One frame of a partition: the columns of an iteration, with its `_Arg` and `_Retval` nodes.

    The arguments, by index: `num_variables` values that each iteration passes to the next; `num_invariants` values of
    constant Enters; then for each of `num_counted` variables the index of the input that its Merge took, which is 0 in
    the first iteration and 1 later. The results: the next values of the variables, then `num_exits` values that leave.
    """

    name: str
    depth: int
    columns: OrderedGraph
    num_variables: int
    num_invariants: int
    num_counted: int
    num_exits: int
    parallel: int
    """how many iterations may be under way at a time"""


@dataclass(frozen=True, slots=True)
class Levels:
    """The root level of a partition, and its loops, each after those inside it."""

    root: OrderedGraph
    loops: list[Loop]


def located(graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> Callable[[NodeProperties], bool]:
    """`is_deferred`, with a node of the graph named in its errors, which come from compiling called functions."""

    def ask(kind: NodeProperties) -> bool:
        try:
            return is_deferred(kind)
        except PartitaError as error:
            node = next(node for node in graph.op_nodes() if node.properties is kind)
            raise error.located(node=node.name, op=node.op, device=node.assigned_device) from error.__cause__

    return ask


def needs_levels(graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> bool:
    """Whether a partition has loops or nodes that wait for something."""
    kinds, _ = graph.distinct_properties()
    return any(role_of(kind.op_def.name) is Role.FRAME or is_deferred(kind) for kind in kinds)


def levels_of(graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> Levels:
    """The levels of a partition; `is_deferred` says of a node whether its outputs come later.

    Raises Unfoldable, and what `build_control_flow_info` and `columns_of` raise.
    """
    return _Folding(graph, is_deferred).fold()


@dataclass
class _Level:
    """The nodes and edges of a level so far; nodes are numbered in the order in which they are added."""

    name: str
    parent: int = OUTSIDE
    depth: int = 0
    ids: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    kinds: list[NodeProperties] = field(default_factory=list)
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)
    enters: list[int] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    merges: list[int] = field(default_factory=list)

    def add(self, node_id: int, name: str, kind: NodeProperties) -> int:
        """The number of the new node in the level."""
        self.ids.append(node_id)
        self.names.append(name)
        self.kinds.append(kind)
        return len(self.ids) - 1

    def connect(self, src: int, output: int, dst: int, port: int) -> None:
        """Both ends are nodes of the level."""
        self.edges.append((src, output, dst, port))

    def columns(self) -> OrderedGraph:
        """The columns of the finished level."""
        distinct: dict[NodeProperties, int] = {}
        kind = [distinct.setdefault(properties, len(distinct)) for properties in self.kinds]
        nodes = Nodes(self.ids, self.names, list(distinct), np.array(kind, np.int64))
        return ordered_columns(nodes, NumberedEdges(*np.array(self.edges, np.int64).reshape(-1, 4).T))


class _Folding:
    def __init__(self, graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> None:
        self.graph = graph
        self.is_deferred = is_deferred
        build_control_flow_info(graph)  # for its errors
        self.joined = JoinedGraph({"": graph}, joins_transfers=False)
        self.frames: Frames = frames_of(self.joined)
        self.kind = {i: graph.node_properties(i) for i in graph.node_ids() if i > SINK_ID}
        self.number = {i: n for n, i in enumerate(self.kind)}
        self.op = {i: kind.op.removeprefix("Ref") for i, kind in self.kind.items()}
        self.levels: dict[int, _Level] = {OUTSIDE: _Level(ROOT)}
        self.node: dict[int, int] = {}  # where a node stands in its level; Enter and Exit: in the outer one
        self.inner: dict[int, int] = {}  # Enter and Exit in the level of their own frame; loop merges
        self.index_taken: dict[int, int] = {}  # by loop merge: the node for the index of the input that it took
        self.counted: set[int] = set()  # loop merges whose index output is read
        self.enter_of: dict[int, int] = {}  # by loop merge
        self.next_of: dict[int, int] = {}

    def fold(self) -> Levels:
        """Opens a level per frame, places the nodes and edges, and closes the levels from the inside out."""
        for node in self.kind:
            if self.op[node] == "Enter":
                self._open(self._level_of(node)).enters.append(node)
        self._find_variables()
        for node in self.kind:
            self._place(node)
        loops = sorted((level for level in self.levels.values() if level.name), key=lambda level: -level.depth)
        for level in loops:
            self._place_variables(level)
        self._connect()
        for level in loops:
            self._fold_into_parent(level)
        return Levels(self.levels[OUTSIDE].columns(), [self._loop(level) for level in loops])

    def _open(self, number: int) -> _Level:
        """The level of a frame; it is made for the first of its Enters, after those around it."""
        if number not in self.levels:
            frame = self.frames.all[number]
            self.levels[number] = _Level(frame.name, frame.parent, self._open(frame.parent).depth + 1)
        return self.levels[number]

    def _level_of(self, node: int) -> int:
        """The frame in whose level a node is: an Enter is in that which it opens."""
        number = self.number[node]
        return self.frames.of[number] if self.op[node] != "Enter" else self.frames.after(self.joined, number)

    def _edges(self) -> Iterator[tuple[int, int, int, int]]:
        arrays = self.graph.edge_arrays()
        for src, output, dst, port in zip(
            arrays.src.tolist(), arrays.src_output.tolist(), arrays.dst.tolist(), arrays.dst_input.tolist(), strict=True
        ):
            if src > SINK_ID and dst > SINK_ID:
                yield src, output, dst, port

    def _find_variables(self) -> None:
        """Finds the merges that begin iterations, with the Enter and the NextIteration of each."""
        begins = {dst for src, _, dst, port in self._edges() if port >= 0 and self.op[src] == "NextIteration"}
        for src, output, dst, port in self._edges():
            if dst in begins:
                source_of = {"Enter": self.enter_of, "NextIteration": self.next_of}.get(self.op[src])
                if source_of is None or port != (0 if source_of is self.enter_of else 1) or self._is_constant(src):
                    raise Unfoldable(self.graph.node_name(dst))
                source_of[dst] = src
            elif (self.op[src] == "NextIteration") or (self.op[src] == "Enter" and not self._is_constant(src)):
                raise Unfoldable(self.graph.node_name(src))
            if src in begins and output == 1:
                self.counted.add(src)
        if any(merge not in self.enter_of for merge in begins):
            raise Unfoldable(next(self.graph.node_name(m) for m in begins if m not in self.enter_of))
        for merge in begins:
            self.levels[self._level_of(merge)].merges.append(merge)

    def _is_constant(self, node: int) -> bool:
        return self.op[node] == "Enter" and bool(self.kind[node].attrs.get("is_constant", False))

    def _constants(self, level: _Level) -> list[int]:
        """The constant Enters of a loop."""
        return [enter for enter in level.enters if self._is_constant(enter)]

    def _place(self, node: int) -> None:
        """Gives a node its place, or places, in the levels."""
        op, kind, name = self.op[node], self.kind[node], self.graph.node_name(node)
        level = self.levels[self._level_of(node)]
        if node in self.enter_of:
            return
        if op in ("Enter", "Exit"):
            outer = self.levels[level.parent]
            self.node[node] = outer.add(_SYNTHETIC, name, _passing_on(kind))
            if op == "Exit":
                level.exits.append(node)
        elif op == "NextIteration":
            self.node[node] = level.add(_SYNTHETIC, name, _passing_on(kind))
        elif level.name and role_of(kind.op_def.name) is Role.RETVAL:
            raise Unfoldable(name)  # a fetch that an iteration sets, and the next one sets again
        elif self.is_deferred(kind):
            self.node[node] = level.add(node, name, Deferred(kind))
        else:
            self.node[node] = level.add(node, name, kind)

    def _place_variables(self, level: _Level) -> None:
        """Adds to a loop's level the arguments and results of an iteration."""
        constant = self._constants(level)
        for index, node in enumerate([*level.merges, *constant]):
            self.inner[node] = level.add(_SYNTHETIC, self.graph.node_name(node), _argument(self.kind[node], 0, index))
        first = len(level.merges) + len(constant)
        for index, merge in enumerate([merge for merge in level.merges if merge in self.counted]):
            self.index_taken[merge] = level.add(
                _SYNTHETIC, self.graph.node_name(merge), _argument(self.kind[merge], 1, first + index)
            )
        for index, node in enumerate([*(self.next_of[merge] for merge in level.merges), *level.exits]):
            kind = self.kind[node]
            place = level.add(_SYNTHETIC, self.graph.node_name(node), _result(kind, index))
            if self.op[node] == "Exit":
                self.inner[node] = place
            else:
                level.connect(self.node[node], 0, place, 0)

    def _connect(self) -> None:
        """Adds the edges of the partition to the levels they are in."""
        for src, output, dst, port in self._edges():
            if dst in self.enter_of:
                continue
            if src in self.enter_of and port < 0 and role_of(self.kind[dst].op_def.name) is Role.RECV:
                continue  # the receives of an iteration are posted when it begins, without this edge
            frame = self.frames.after(self.joined, self.number[src])
            place = self.inner if self.op[dst] == "Exit" else self.node
            self.levels[frame].connect(*self._place_of_output(src, output), place[dst], port)

    def _place_of_output(self, src: int, output: int) -> tuple[int, int]:
        """The node in the level that has an output of a node of the graph, and the number of that output."""
        if src in self.enter_of:
            return (self.index_taken[src], 0) if output == 1 else (self.inner[src], output)
        if self.op[src] == "Enter":
            return self.inner[src], output
        return self.node[src], output

    def _fold_into_parent(self, level: _Level) -> None:
        """Adds to the outer level the node that stands for a loop."""
        outer = self.levels[level.parent]
        takes = [*(self.enter_of[merge] for merge in level.merges), *self._constants(level)]
        types = tuple(self.kind[enter].output_types[0] for enter in takes)
        gives = tuple(self.kind[exit_].output_types[0] for exit_ in level.exits)
        loop = outer.add(_SYNTHETIC, level.name, _loop_properties(level.name, types, gives))
        for port, enter in enumerate(takes):
            outer.connect(self.node[enter], 0, loop, port)
        for output, exit_ in enumerate(level.exits):
            outer.connect(loop, output, self.node[exit_], 0)

    def _loop(self, level: _Level) -> Loop:
        return Loop(
            name=level.name,
            depth=level.depth,
            columns=level.columns(),
            num_variables=len(level.merges),
            num_invariants=len(self._constants(level)),
            num_counted=sum(merge in self.counted for merge in level.merges),
            num_exits=len(level.exits),
            parallel=max(1, int(self.kind[level.enters[0]].attrs["parallel_iterations"])),
        )


def _passing_on(kind: NodeProperties) -> NodeProperties:
    """An identity in place of an Enter, an Exit or a NextIteration."""
    op = "RefIdentity" if kind.op.startswith("Ref") else "Identity"
    return properties_of(op, {"T": kind.attrs["T"]})


def _argument(kind: NodeProperties, output: int, index: int) -> NodeProperties:
    return properties_of("_Arg", {"T": kind.output_types[output], "index": index})


def _result(kind: NodeProperties, index: int) -> NodeProperties:
    return properties_of("_Retval", {"T": kind.input_types[0], "index": index})
