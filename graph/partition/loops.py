"""Loops over several devices: on each device that takes part, a small loop of its own drives the receives.

Flows in: a placed graph whose control-flow nodes have been moved to their data. Flows out: the same graph with control
loops added. Always holds: every edge that crosses devices inside a frame ends in a node that also waits for the Merge
of its frame's control loop on its device, so what is received there is received once per iteration.

A partition sees of a loop only the nodes it holds. Nothing in it would tell a receive that the next iteration has
begun, or that there is none. So the device that has the LoopCond sends it, every iteration, to every other device of
the frame, where it steers a loop over an empty tensor:

    Const (root frame only) -> Enter -> Merge -> Switch (predicate: the leader's LoopCond)
                                          ^        | true
                                          `- NextIteration

There is no Exit: the Switch's other output goes nowhere. In a nested frame the Merge of the outer frame's control loop
stands in for the constant, so the inner loop starts once per outer iteration. (A. Agarwal et al., Dynamic Control Flow
in Large-Scale Machine Learning, EuroSys 2018, section 4.4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...errors import InvalidArgumentError
from ..analysis.control_flow import FRAMED, ControlFlowInfo, build_control_flow_info
from ..columns import SINK_ID, SOURCE_ID
from ..dtypes import DataType
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties, properties_of
from ..ops.record import NodeClass
from .pairs import empty_constant

PREFIX = "_cloop"
_TRUE, _PREDICATE = 1, 1  # the output of Switch that goes on, the input that decides


def has_frames(graph: Graph) -> bool:
    """Whether any node opens, leaves or steers a frame."""
    return bool(FRAMED & {kind.op_def.record.node_class for kind in graph.distinct_properties()[0]})


def is_gate(graph: Graph, node_id: int) -> bool:
    """Whether a node is the Merge of a control loop, which says that an iteration has begun."""
    return graph.node_properties(node_id).op == "Merge" and graph.node_name(node_id).startswith(PREFIX)


def add_control_loops(graph: Graph, new_name: Callable[[str], str]) -> None:
    """Adds, in place, the control loops that a placed graph with frames needs.

    Names are drawn per loop in the order enter, merge, switch, next iteration, and last the constant of the root frame.
    Raises InvalidArgumentError for a frame over several devices that has no LoopCond, and what
    `build_control_flow_info` raises.
    """
    _Loops(graph, new_name).add()


@dataclass(frozen=True, slots=True)
class _Crossing:
    """An edge between devices inside a frame; `frame` is the Enter that stands for it."""

    dst: int
    device: str
    frame: int


class _Loops:
    def __init__(self, graph: Graph, new_name: Callable[[str], str]) -> None:
        self.graph = graph
        self.new_name = new_name
        self.info: ControlFlowInfo = build_control_flow_info(graph)
        self.conditions = {
            self.info.frame_name[n.id]: n for n in graph.op_nodes() if n.node_class is NodeClass.LOOP_COND
        }
        self.gates: dict[tuple[str, str], Node] = {}

    def add(self) -> None:
        """Makes the loops, then hangs every node that something is sent to on the gate of its frame and device."""
        for crossing in list(self._crossings()):
            self._lead_in(crossing)
        for crossing in list(self._crossings()):
            gate = self.gates[self.info.frame_name[crossing.frame], crossing.device]
            # One edge per input that is received: the cut moves each of them on to a receive.
            self.graph.add_control_edge(gate, self.graph.node(crossing.dst), allow_duplicates=True)

    def _crossings(self) -> Iterator[_Crossing]:
        """Edges between devices with both ends in one frame other than the root, by id."""
        graph, info = self.graph, self.info
        arrays = graph.edge_arrays()
        devices = graph.assigned_device_indices()
        names = graph.device_names()
        for src, dst in zip(arrays.src.tolist(), arrays.dst.tolist(), strict=True):
            if src <= SINK_ID or dst <= SINK_ID or devices[src] == devices[dst]:
                continue
            frame = self._input_frame(dst)
            name = info.frame_name[frame]
            if name and name == info.of_outputs(src, self._class(src))[2]:
                yield _Crossing(dst, names[int(devices[dst])], frame)

    def _class(self, node: int) -> NodeClass:
        return self.graph.node_properties(node).op_def.record.node_class

    def _input_frame(self, node: int) -> int:
        """The frame that a node's inputs are in: an Enter's are outside of the one it opens."""
        return (self.info.parent_frame if self._class(node) is NodeClass.ENTER else self.info.frame)[node]

    def _lead_in(self, crossing: _Crossing) -> None:
        """Makes the control loops of a frame and of those around it on one device, as far as they are missing."""
        graph, info = self.graph, self.info
        frame, inner_enter = crossing.frame, None
        while frame != SOURCE_ID:
            place = info.frame_name[frame], crossing.device
            gate = self.gates.get(place)
            enter = None
            if gate is None:
                enter, gate = self._add_loop(crossing, frame)
                self.gates[place] = gate
            if inner_enter is not None:
                graph.add_edge(gate, 0, inner_enter, 0)
            if enter is None:
                return
            frame, inner_enter = info.parent_frame[frame], enter
        assert inner_enter is not None  # a crossing is never in the root frame
        start = self._add(self.new_name(graph.node_name(crossing.dst)), empty_constant(), crossing.device, SOURCE_ID)
        graph.add_edge(start, 0, inner_enter, 0)

    def _add_loop(self, crossing: _Crossing, frame: int) -> tuple[Node, Node]:
        """The Enter and the Merge of a new control loop."""
        graph, name = self.graph, self.info.frame_name[frame]
        condition = self.conditions.get(name)
        if condition is None:
            raise InvalidArgumentError(f"A cross-device loop must have a pivot predicate: {name}", frame=name)
        dst, device = graph.node_name(crossing.dst), crossing.device
        enter, merge, switch, following = (
            self._add(PREFIX + self.new_name(dst), properties, device, frame) for properties in self._kinds(frame)
        )
        graph.add_edge(merge, 0, switch, 0)
        graph.add_edge(condition, 0, switch, _PREDICATE)
        graph.add_edge(switch, _TRUE, following, 0)
        graph.add_edge(enter, 0, merge, 0)
        graph.add_edge(following, 0, merge, 1)
        return enter, merge

    def _kinds(self, frame: int) -> Iterator[NodeProperties]:
        """The properties of Enter, Merge, Switch and NextIteration of a control loop."""
        loop = self.graph.node(frame)
        tensor = {"T": DataType.FLOAT}
        parallel = {"frame_name": loop.attrs["frame_name"], "parallel_iterations": loop.attrs["parallel_iterations"]}
        yield properties_of("Enter", {**tensor, **parallel})
        yield properties_of("Merge", {**tensor, "N": 2})
        yield properties_of("Switch", tensor)
        yield properties_of("NextIteration", tensor)

    def _add(self, name: str, properties: NodeProperties, device: str, frame: int) -> Node:
        """A node on a device, in a frame."""
        node = self.graph.add_node_with(name, properties, device=device)
        node.assigned_device = device
        self.info.frame.append(frame)
        self.info.parent_frame.append(self.info.parent_frame[frame])
        self.info.frame_name.append(self.info.frame_name[frame])
        return node
