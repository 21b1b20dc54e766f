"""The structure of the loops of a graph: variables, invariants, exits and conditions, one `DifferentiatedLoop` per
frame.

Supported loops have the form

                     +---------------------------------------------------+
                     v                                                   |
    x -> Enter -> Merge -> Switch:1 -> body -> following -> NextIteration +        a variable
                     |     Switch:0 -> Exit -> y
                     +-> condition -> LoopCond (-> every Switch)
    c -> Enter(is_constant) -> body                                                 an invariant

A variable that every iteration passes on unchanged counts as an invariant too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import UnimplementedError
from ..analysis.control_flow import build_control_flow_info
from ..analysis.data_edges import DataEdges
from ..columns import SINK_ID
from ..edge_ends import Output
from ..graph import Graph
from ..ops.record import NodeClass


@dataclass(eq=False, slots=True)
class EnteredValue:
    """A value that enters a loop through one Enter; `inside` is the output from which the body reads it."""

    enter: int
    inside: Output
    following: Output | None = None
    """the value of the next iteration; None for an invariant"""
    exits: list[int] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class DifferentiatedLoop:
    """One frame; compared by identity."""

    name: str
    parent: DifferentiatedLoop | None
    parallel_iterations: int
    condition: int = -1
    """the LoopCond"""
    variables: list[EnteredValue] = field(default_factory=list)
    """one per Enter, by ascending id"""
    invariants: dict[Output, Output] = field(default_factory=dict)
    """invariants: the output inside the body -> the output outside of the loop"""


class Loops:
    """All loops of a graph."""

    def __init__(self, graph: Graph, edges: DataEdges) -> None:
        """Raises what `build_control_flow_info` raises, UnimplementedError for loops of another form."""
        self.innermost: dict[int, DifferentiatedLoop] = {}
        """the innermost loop of the outputs of a node; only nodes in loops have an entry"""
        self.of_condition: dict[int, DifferentiatedLoop] = {}
        self.of_exit: dict[int, DifferentiatedLoop] = {}
        self._graph = graph
        self._edges = edges
        self._first_new = graph.num_node_ids
        if NodeClass.ENTER in graph.node_classes():
            self._find()

    def _find(self) -> None:
        graph = self._graph
        graph.fix_source_and_sink_edges()
        info = build_control_flow_info(graph)
        loops: dict[str, DifferentiatedLoop] = {}
        inside = [node for node in graph.node_ids() if node > SINK_ID and info.frame_name[node]]
        enters = [node for node in inside if self._kind(node) is NodeClass.ENTER]
        for node in enters:
            name, parallel = info.frame_name[node], graph.node_properties(node).attrs["parallel_iterations"]
            loops.setdefault(name, DifferentiatedLoop(name, None, parallel))
        for node in enters:
            loops[info.frame_name[node]].parent = loops.get(info.frame_name[info.parent_frame[node]])
        for node in inside:
            self._place(node, loops[info.frame_name[node]])
        for loop in loops.values():
            self._take_apart(loop)

    def _place(self, node: int, loop: DifferentiatedLoop) -> None:
        kind = self._kind(node)
        if kind is NodeClass.EXIT:
            self.of_exit[node] = loop
            if loop.parent is not None:
                self.innermost[node] = loop.parent
            return
        self.innermost[node] = loop
        if kind is NodeClass.LOOP_COND:
            loop.condition = node
            self.of_condition[node] = loop
        elif kind is NodeClass.ENTER:
            loop.variables.append(EnteredValue(node, (node, 0)))

    def _take_apart(self, loop: DifferentiatedLoop) -> None:
        if loop.condition < 0:
            raise UnimplementedError(f"loop {loop.name!r} has no LoopCond; gradients know only loops that have one")
        of_merge: dict[int, EnteredValue] = {}
        for variable in loop.variables:
            readers = [reader for reader, _ in self._edges.readers(variable.enter)]
            merges = [reader for reader in readers if self._kind(reader) is NodeClass.MERGE]
            if not self._graph.node_properties(variable.enter).attrs["is_constant"] and merges:
                merge = merges[0]
                variable.inside, of_merge[merge] = (merge, 0), variable
                variable.following = self._following(merge)
        for exit_, its_loop in self.of_exit.items():
            if its_loop is loop:
                of_merge[self._merge_of(exit_)].exits.append(exit_)
        for variable in of_merge.values():
            if variable.following is not None and self.origin(loop, variable.following) == variable.inside:
                variable.following = None
        for variable in loop.variables:
            if variable.following is None:
                loop.invariants[variable.inside] = self._edges.sources(variable.enter)[0]

    def _following(self, merge: int) -> Output:
        """The output that the NextIteration before a Merge reads."""
        for src, _ in self._edges.sources(merge):
            if self._kind(src) is NodeClass.NEXT_ITERATION:
                return self._edges.sources(src)[0]
        raise UnimplementedError(
            "a Merge of an Enter with something else than a NextIteration", node=self._graph.node_name(merge)
        )

    def _merge_of(self, exit_: int) -> int:
        """The Merge whose last value an Exit has."""
        switch = self._edges.sources(exit_)[0][0]
        merge = self._edges.sources(switch)[0][0] if self._kind(switch) is NodeClass.SWITCH else switch
        if self._kind(merge) is not NodeClass.MERGE:
            raise UnimplementedError(
                "an Exit of something else than a variable of the loop; gradients know only loops that give variables",
                node=self._graph.node_name(exit_),
            )
        return merge

    def origin(self, loop: DifferentiatedLoop, output: Output) -> Output:
        """The source of a value inside a loop, followed back through nodes that only pass it on."""
        while True:
            kind = self._kind(output[0])
            if kind is not NodeClass.IDENTITY and not self.is_guard(loop, output[0]):
                return output
            output = self._edges.sources(output[0])[0]

    def is_guard(self, loop: DifferentiatedLoop, node: int) -> bool:
        """Whether a node is a Switch between a Merge of the loop and its body."""
        return self._kind(node) is NodeClass.SWITCH and self._edges.sources(node)[1][0] == loop.condition

    def sources(self, node: int) -> Sequence[Output] | None:
        """The inputs of a loop, named by its LoopCond; none at the begin of an iteration; None for other nodes."""
        loop = self.of_condition.get(node)
        if loop is not None:
            return [self._edges.sources(variable.enter)[0] for variable in loop.variables]
        kind = self._kind(node)
        if kind is NodeClass.ENTER or (kind is NodeClass.MERGE and self.begins_iteration(node)):
            return ()
        return None

    def begins_iteration(self, merge: int) -> bool:
        """Whether a Merge is the head of a loop rather than the end of a conditional."""
        return any(self._kind(src) is NodeClass.NEXT_ITERATION for src, _ in self._edges.sources(merge))

    def _kind(self, node: int) -> NodeClass:
        if node >= self._first_new:
            return NodeClass.OTHER
        return self._graph.node_properties(node).op_def.record.node_class
