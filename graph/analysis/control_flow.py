"""The loop frame of each node, and whether the loops of a graph are well formed.

Edges from source and to sink must exist. An Enter belongs to the frame it opens, an Exit to the frame it leaves. Every
Enter has a frame of its own in the columns; other nodes take over the frame of the node that reached them first. The
source stands for the root frame, whose name is "". Nodes are visited breadth first from the source, edges in
TensorFlow's order, so that of several mistakes the same one is reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import InternalError, InvalidArgumentError, NotFoundError
from ..columns import SINK_ID, SOURCE_ID
from ..graph import Graph
from ..ops.record import NodeClass
from ..ops.summaries import node_for_error

UNREACHABLE = -1
FRAMED = frozenset({NodeClass.ENTER, NodeClass.EXIT, NodeClass.LOOP_COND})
"""classes of nodes that open, leave or control a frame; without any, all nodes are in the root frame"""
_MANY_ALLOWED = "LoopCounter"  # LoopCond nodes with this in their names may be in a frame besides its own
_REPORT = "This is an internal bug, please file a bug report with instructions on how to reproduce the error."


@dataclass(frozen=True, slots=True)
class ControlFlowInfo:
    """Columns with one entry per node id."""

    frame: list[int]
    """the Enter of the node's frame; the source in the root frame, UNREACHABLE if the node is not reached from it"""
    parent_frame: list[int]
    """the same for the parent frame"""
    frame_name: list[str]

    def of_outputs(self, node: int, kind: NodeClass) -> tuple[int, int, str]:
        """Frame, parent frame and frame name of the outputs of a node: those of an Exit are in the parent frame."""
        if kind is not NodeClass.EXIT:
            return self.frame[node], self.parent_frame[node], self.frame_name[node]
        outside = self.parent_frame[node]
        return outside, self.parent_frame[outside], self.frame_name[outside]


def build_control_flow_info(graph: Graph) -> ControlFlowInfo:
    """The frames of all nodes.

    Raises InvalidArgumentError for a node with inputs from different frames, an Enter without frame name, an Exit in
    the root frame, two LoopCond nodes in a frame; NotFoundError for an Enter that lacks the attr; InternalError for
    frames of one name with different parents. Codes and messages are TensorFlow's.
    """
    search = _Search(graph)
    search.run()
    _check_loops(search.info, search.classes, graph)
    return search.info


def has_frames(graph: Graph) -> bool:
    """Whether any node opens or leaves a frame, or computes the condition of one."""
    return not FRAMED.isdisjoint(graph.node_classes())


class _Search:
    """One walk over a graph from its source."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        size = graph.num_node_ids
        self.info = ControlFlowInfo([UNREACHABLE] * size, [UNREACHABLE] * size, [""] * size)
        self.classes = _classes(graph)
        self.first_visitor = [SOURCE_ID] * size

    def run(self) -> None:
        info, ready = self.info, deque([SOURCE_ID])
        info.frame[SOURCE_ID] = info.parent_frame[SOURCE_ID] = SOURCE_ID
        while ready:
            node = ready.popleft()
            frame, parent, name = self._after(node)
            for edge in self.graph.out_edge_ids(node):
                child = self.graph.edge_ends(edge)[2]
                if child <= SINK_ID:
                    continue
                if info.frame[child] != UNREACHABLE:
                    self._check_again(child, node, name)
                    continue
                self.first_visitor[child] = node
                if self.classes.get(child) is NodeClass.ENTER:
                    info.frame[child], info.parent_frame[child] = child, frame
                    info.frame_name[child] = self._name_of(child)
                else:
                    info.frame[child], info.parent_frame[child], info.frame_name[child] = frame, parent, name
                ready.append(child)

    def _after(self, node: int) -> tuple[int, int, str]:
        kind = self.classes.get(node, NodeClass.OTHER)
        if kind is NodeClass.EXIT and self.info.frame[node] == SOURCE_ID:
            raise InvalidArgumentError(
                "Invalid Exit op: Cannot find a corresponding Enter op.", node=self.graph.node_name(node)
            )
        return self.info.of_outputs(node, kind)

    def _name_of(self, enter: int) -> str:
        node = self.graph.node_name(enter)
        try:
            name: bytes = self.graph.node_properties(enter).attrs["frame_name"]
        except NotFoundError as error:
            raise NotFoundError(f"{error.message} {node_for_error(node)}", node=node) from None
        if not name or not isinstance(name, bytes):
            raise InvalidArgumentError(f"The Enter {node_for_error(node)} must have a frame name.", node=node)
        return name.decode(errors="surrogateescape")

    def _check_again(self, child: int, visitor: int, frame_name: str) -> None:
        """Raises InvalidArgumentError if a node that has a frame already has another input from a different one."""
        info = self.info
        known = info.frame_name[child]
        if self.classes.get(child) is NodeClass.ENTER:
            known = info.frame_name[info.parent_frame[child]]
        if known == frame_name:
            return
        name, first, second = map(self.graph.node_name, (child, visitor, self.first_visitor[child]))
        raise InvalidArgumentError(
            f"{node_for_error(name)} has inputs from different frames. "
            f"The input {node_for_error(first)} is in frame '{frame_name}'. "
            f"The input {node_for_error(second)} is in frame '{known}'.",
            node=name,
            frame=known,
        )


def _classes(graph: Graph) -> dict[int, NodeClass]:
    """The classes of the nodes that matter for frames, by node id."""
    kinds, kind_of = graph.distinct_properties()
    classes = [kind.op_def.record.node_class for kind in kinds]
    return {node: classes[kind] for node, kind in enumerate(kind_of.tolist()) if kind >= 0 and classes[kind] in FRAMED}


def _check_loops(info: ControlFlowInfo, classes: Mapping[int, NodeClass], graph: Graph) -> None:
    """Raises unless all frames of one name have the same parent, and at most one LoopCond."""
    parents: dict[str, str] = {}
    conditions: dict[str, int] = {}
    for node in graph.node_ids():
        if node <= SINK_ID or info.frame[node] == UNREACHABLE:
            continue
        frame, parent = info.frame_name[node], info.frame_name[info.parent_frame[node]]
        if parents.setdefault(frame, parent) != parent:
            name = graph.node_name(node)
            raise InternalError(
                f'Invalid loop structure: Mismatched parent frames for "{frame}": "{parent}" vs "{parents[frame]}". '
                f"The node giving this error: {node_for_error(name)}. {_REPORT}",
                node=name,
                frame=frame,
            )
        if classes.get(node) is NodeClass.LOOP_COND and (other := conditions.setdefault(frame, node)) != node:
            _check_second_condition(graph.node_name(node), graph.node_name(other), frame)


def _check_second_condition(name: str, other: str, frame: str) -> None:
    if _MANY_ALLOWED not in name and _MANY_ALLOWED not in other:
        raise InvalidArgumentError(
            f'Invalid loop structure: Loop "{frame}" has more than one LoopCond node: {node_for_error(name)} and '
            f"{node_for_error(other)}. {_REPORT}",
            node=name,
            frame=frame,
        )
