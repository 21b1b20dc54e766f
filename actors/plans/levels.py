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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PartitaError, UnimplementedError
from ...graph.analysis.control_flow import build_control_flow_info
from ...graph.analysis.joined import JoinedGraph
from ...graph.analysis.levels import OUTSIDE, Frame, Frames, frames_of, is_constant_enter
from ...graph.arrays import owners
from ...graph.columns import CONTROL_SLOT, SINK_ID
from ...graph.dtypes import is_ref
from ...graph.ops.properties import NodeProperties, properties_of
from ...graph.ops.record import NodeClass
from ...graph.ops.registry import lookup_op, unlisted
from .columns import Nodes, NumberedEdges, OrderedGraph, columns_of, ordered_columns
from .roles import Role, role_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...graph.dtypes import DataType
    from ...graph.graph import Graph
    from .numbering import SlotNumber

    _Row = tuple[SlotNumber, ...]

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
    constant Enters; then for some variables the index of the input that its Merge took, which is 0 in the first
    iteration and 1 later. The results: the next values of the variables, then the values that leave.
    """

    name: str
    depth: int
    columns: OrderedGraph
    num_variables: int
    num_invariants: int
    parallel: int
    """how many iterations may be under way at a time"""

    def entering(self, slots: Mapping[int, SlotNumber]) -> tuple[_Row, _Row]:
        """The slots of arguments, given by index: those of variables and invariants, and those of the indices."""
        ordered, first = tuple(slots[index] for index in sorted(slots)), self.num_variables + self.num_invariants
        return ordered[:first], ordered[first:]

    def leaving(self, slots: Mapping[int, SlotNumber]) -> tuple[_Row, _Row]:
        """The slots of results, given by index: those of the next values of the variables, and those of the exits."""
        ordered = tuple(slots[index] for index in sorted(slots))
        return ordered[: self.num_variables], ordered[self.num_variables :]


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


def levels_of(graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> Levels:
    """The levels of a partition; `is_deferred` says of a node whether its outputs come later.

    Raises Unfoldable, and what `build_control_flow_info` and `columns_of` raise.
    """
    if any(role_of(kind.op_def.name) is Role.FRAME for kind in graph.distinct_properties()[0]):
        return _Folding(graph, is_deferred).fold()
    columns = columns_of(graph)
    if not any(map(is_deferred, columns.kinds)):
        return Levels(columns, [])
    kinds = [Deferred(kind) if is_deferred(kind) else kind for kind in columns.kinds]
    properties = list(map(kinds.__getitem__, columns.kind.tolist()))
    return Levels(replace(columns, kinds=kinds, properties=properties), [])


class LevelBuilder:
    """The nodes and edges of a level so far; nodes are numbered in the order in which they are added."""

    def __init__(self) -> None:
        self._nodes: list[tuple[int, str, NodeProperties]] = []
        self._edges: list[tuple[int, int, int, int]] = []

    def add(self, node_id: int, name: str, kind: NodeProperties) -> int:
        """The number of the new node in the level."""
        self._nodes.append((node_id, name, kind))
        return len(self._nodes) - 1

    def connect(self, src: int, output: int, dst: int, port: int) -> None:
        """Both ends are nodes of the level."""
        self._edges.append((src, output, dst, port))

    def columns(self) -> OrderedGraph:
        """The columns of the finished level."""
        distinct: dict[NodeProperties, int] = {}
        kind = [distinct.setdefault(properties, len(distinct)) for _, _, properties in self._nodes]
        ids, names = [node_id for node_id, _, _ in self._nodes], [name for _, name, _ in self._nodes]
        nodes = Nodes(ids, names, list(distinct), np.array(kind, np.int64))
        return ordered_columns(nodes, NumberedEdges(*np.array(self._edges, np.int64).reshape(-1, 4).T))


class _Folding:
    """Nodes are numbered as in the joined graph, levels as its frames."""

    def __init__(self, graph: Graph, is_deferred: Callable[[NodeProperties], bool]) -> None:
        self.is_deferred = is_deferred
        build_control_flow_info(graph)  # for its errors
        self.ids = [i for i in graph.node_ids() if i > SINK_ID]
        self.graph = JoinedGraph({"": graph}, joins_transfers=False)
        self.frames: Frames = frames_of(self.graph)
        self.levels = [LevelBuilder() for _ in self.frames.all]
        self.node: dict[int, int] = {}  # where a node stands in its level; Enter and Exit: in the outer one
        self.inner: dict[int, int] = {}  # Enter and Exit in the level of their own frame; loop merges
        self.index_taken: dict[int, int] = {}  # by loop merge: the node for the index of the input that it took
        self.enter_of: dict[int, int] = {}  # by loop merge
        self.next_of: dict[int, int] = {}
        self.edges = _edges_of(self.graph)
        self._find_variables()
        self.counted = {src for src, output, _, _ in self.edges if output == 1 and src in self.enter_of}
        """loop merges whose index output is read"""

    def fold(self) -> Levels:
        """Places the nodes and edges, and closes the levels from the inside out."""
        for node in range(len(self.graph)):
            if node not in self.enter_of:
                self._place(node)
        frames = self.frames.all
        inner_first = sorted(range(OUTSIDE + 1, len(frames)), key=lambda number: -frames[number].depth)
        for number in inner_first:
            self._place_variables(frames[number], self.levels[number])
        self._connect()
        for number in inner_first:
            self._fold_into_parent(frames[number])
        loops = [self._loop(frames[number], self.levels[number]) for number in inner_first]
        return Levels(self.levels[OUTSIDE].columns(), loops)

    def _find_variables(self) -> None:
        """Finds the Enter and the NextIteration of each merge that begins iterations; these lead nowhere else."""
        graph = self.graph
        for merge in (merge for frame in self.frames.all for merge in frame.merges):
            enter, *others = [src for src, _ in graph.inputs_of(merge)]
            is_usual = self._is_variable(enter) and [*map(graph.node_class, others)] == [NodeClass.NEXT_ITERATION]
            if not is_usual or graph.controls_of(merge):
                raise Unfoldable(graph.names[merge])
            self.enter_of[merge], self.next_of[merge] = enter, others[0]
        for src, _, dst, _ in self.edges:
            goes_on = graph.node_class(src) is NodeClass.NEXT_ITERATION or self._is_variable(src)
            if goes_on and dst not in self.enter_of:
                raise Unfoldable(graph.names[src])

    def _is_variable(self, node: int) -> bool:
        """Whether a node is an Enter of the first iteration alone."""
        return self.graph.node_class(node) is NodeClass.ENTER and not is_constant_enter(self.graph.properties[node])

    def _constants(self, frame: Frame) -> list[int]:
        """The constant Enters of a loop."""
        return [enter for enter in frame.enters if not self._is_variable(enter)]

    def _place(self, node: int) -> None:
        """Adds a node to the level in which its outputs are used; an Exit and an Enter are in the outer one."""
        graph, kind, name = self.graph, self.graph.properties[node], self.graph.names[node]
        number, node_class = self.frames.of[node], self.graph.node_class(node)
        level = self.levels[self.frames.after(graph, node) if node_class is NodeClass.EXIT else number]
        if role_of(kind.op_def.name) is Role.FRAME:
            self.node[node] = level.add(_SYNTHETIC, name, _passing_on(kind))
        elif number != OUTSIDE and node_class is NodeClass.RETVAL:
            raise Unfoldable(name)  # a fetch that an iteration sets, and the next one sets again
        else:
            self.node[node] = level.add(self.ids[node], name, Deferred(kind) if self.is_deferred(kind) else kind)

    def _place_variables(self, frame: Frame, level: LevelBuilder) -> None:
        """Adds to a loop's level the arguments and results of an iteration."""
        kinds, names = self.graph.properties, self.graph.names
        arguments = [*frame.merges, *self._constants(frame)]
        for index, node in enumerate(arguments):
            self.inner[node] = level.add(_SYNTHETIC, names[node], _argument(kinds[node], 0, index))
        for index, merge in enumerate((m for m in frame.merges if m in self.counted), len(arguments)):
            self.index_taken[merge] = level.add(_SYNTHETIC, names[merge], _argument(kinds[merge], 1, index))
        for index, merge in enumerate(frame.merges):
            node = self.next_of[merge]
            level.connect(self.node[node], 0, level.add(_SYNTHETIC, names[node], _result(kinds[node], index)), 0)
        for index, node in enumerate(frame.exits, len(frame.merges)):
            self.inner[node] = level.add(_SYNTHETIC, names[node], _result(kinds[node], index))

    def _connect(self) -> None:
        """Adds the edges of the partition to the levels they are in."""
        graph = self.graph
        for src, output, dst, port in self.edges:
            if dst in self.enter_of:
                continue
            if src in self.enter_of and port < 0 and role_of(graph.properties[dst].op_def.name) is Role.RECV:
                continue  # the receives of an iteration are posted when it begins, without this edge
            level = self.levels[self.frames.after(graph, src)]
            place = self.inner if graph.node_class(dst) is NodeClass.EXIT else self.node
            level.connect(*self._place_of_output(src, output), place[dst], port)

    def _place_of_output(self, src: int, output: int) -> tuple[int, int]:
        """The node in the level that has an output of a node of the graph, and the number of that output."""
        if src in self.index_taken and output == 1:
            return self.index_taken[src], 0
        is_argument = src in self.enter_of or self.graph.node_class(src) is NodeClass.ENTER
        return (self.inner if is_argument else self.node)[src], output

    def _fold_into_parent(self, frame: Frame) -> None:
        """Adds to the outer level the node that stands for a loop."""
        outer, kinds = self.levels[frame.parent], self.graph.properties
        takes = [*(self.enter_of[merge] for merge in frame.merges), *self._constants(frame)]
        types = tuple(kinds[enter].output_types[0] for enter in takes)
        gives = tuple(kinds[exit_].output_types[0] for exit_ in frame.exits)
        loop = outer.add(_SYNTHETIC, frame.name, _loop_properties(frame.name, types, gives))
        for port, enter in enumerate(takes):
            outer.connect(self.node[enter], 0, loop, port)
        for output, exit_ in enumerate(frame.exits):
            outer.connect(loop, output, self.node[exit_], 0)

    def _loop(self, frame: Frame, level: LevelBuilder) -> Loop:
        return Loop(
            name=frame.name,
            depth=frame.depth,
            columns=level.columns(),
            num_variables=len(frame.merges),
            num_invariants=len(self._constants(frame)),
            parallel=max(1, frame.parallel_iterations),
        )


def _edges_of(graph: JoinedGraph) -> list[tuple[int, int, int, int]]:
    """All edges: source, output, destination, port; the last two of a control edge are CONTROL_SLOT."""
    dst, control_dst = owners(np.diff(graph.input_start)), owners(np.diff(graph.control_start))
    port, control = np.arange(len(dst)) - graph.input_start[dst], np.full(len(control_dst), CONTROL_SLOT)
    data = zip(graph.input_src.tolist(), graph.input_output.tolist(), dst.tolist(), port.tolist(), strict=True)
    waits = zip(graph.control_src.tolist(), control.tolist(), control_dst.tolist(), control.tolist(), strict=True)
    return [*data, *waits]


def _passing_on(kind: NodeProperties) -> NodeProperties:
    """An identity in place of an Enter, an Exit or a NextIteration."""
    return properties_of("RefIdentity" if is_ref(kind.output_types[0]) else "Identity", {"T": kind.attrs["T"]})


def _argument(kind: NodeProperties, output: int, index: int) -> NodeProperties:
    return properties_of("_Arg", {"T": kind.output_types[output], "index": index})


def _result(kind: NodeProperties, index: int) -> NodeProperties:
    return properties_of("_Retval", {"T": kind.input_types[0], "index": index})
