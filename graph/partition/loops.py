"""Control loops: a loop over several devices receives its tensors once per iteration.

A partition holds only its own nodes of a loop, and nothing in it says that another iteration has begun or that there is
none. So each device that receives a tensor inside a frame gets a loop of its own over an empty tensor. Its predicate is
the LoopCond of the frame, which is sent to it in every iteration:

    Const (root frame only) -> Enter -> Merge -> Switch (predicate: LoopCond of the frame)
                                          ^        | true
                                          `- NextIteration

The Merge is the gate of the frame on this device: what is received inside the frame waits for it. Nothing reads the
false output of the Switch, so there is no Exit. In a nested frame the gate of the outer frame takes the place of the
constant, so the inner loop starts once per outer iteration. (A. Agarwal et al., Dynamic Control Flow in Large-Scale
Machine Learning, EuroSys 2018, section 4.4.)

A loop on device 0, with a body on device 1:

    >>> def on(device):
    ...     return b.device(f"/job:a/replica:0/task:0/device:CPU:{device}")
    >>> def body(value):
    ...     with on(1):
    ...         return b.op("Neg", value, name="neg")
    >>> b = GraphBuilder()
    >>> with on(0):
    ...     zero = b.constant(0.0, name="zero")
    ...     _ = while_loop(b, lambda value: b.op("Less", value, 5.0, name="less"), body, [zero], name="f")
    >>> graph = b.graph()
    >>> for node in graph.op_nodes():  # as the placer does
    ...     node.assigned_device = node.requested_device
    >>> print(partitions_text(split_graph(graph)))
    /job:a/replica:0/task:0/device:CPU:0: 18 nodes
    zero: float = Const() {value=0}
    f/Enter: float = Enter(zero) {frame_name="f/while_context"}
    f/Merge: float, int32 = Merge(f/Enter, f/NextIteration)
    f/less/y: float = Const(^f/Merge) {value=5}
    f/less: bool = Less(f/Merge, f/less/y)
    f/LoopCond: bool = LoopCond(f/less)
    f/Switch: float, float = Switch(f/Merge, f/LoopCond)
    f/Identity: float = Identity(f/Switch:1)
    f/Identity/_10 = _Send(f/Identity) {edge_10_f/Identity to f/Identity/_11 @CPU:1}
    f/Exit: float = Exit(f/Switch)
    f/LoopCond/_14 = _Send(f/LoopCond) {edge_17_f/LoopCond to f/LoopCond/_15 @CPU:1}
    f/NextIteration/_9: float = Const() {value=[0]}
    _cloopf/NextIteration/_5: float = Enter(f/NextIteration/_9) {frame_name="f/while_context"}
    _cloopf/NextIteration/_6: float, int32 = Merge(_cloopf/NextIteration/_5, _cloopf/NextIteration/_8)
    f/neg/_13: float = _Recv(^_cloopf/NextIteration/_6) {edge_11_f/neg from f/neg/_12 @CPU:1}
    f/NextIteration: float = NextIteration(f/neg/_13)
    _cloopf/NextIteration/_7: float, float = Switch(_cloopf/NextIteration/_6, f/LoopCond)
    _cloopf/NextIteration/_8: float = NextIteration(_cloopf/NextIteration/_7:1)
    <BLANKLINE>
    /job:a/replica:0/task:0/device:CPU:1: 9 nodes
    f/neg/_4: float = Const() {value=[0]}
    _cloopf/neg/_0: float = Enter(f/neg/_4) {frame_name="f/while_context"}
    _cloopf/neg/_1: float, int32 = Merge(_cloopf/neg/_0, _cloopf/neg/_3)
    f/Identity/_11: float = _Recv(^_cloopf/neg/_1) {edge_10_f/Identity from f/Identity/_10 @CPU:0}
    f/neg: float = Neg(f/Identity/_11)
    f/neg/_12 = _Send(f/neg) {edge_11_f/neg to f/neg/_13 @CPU:0}
    f/LoopCond/_15: bool = _HostRecv(^_cloopf/neg/_1) {edge_17_f/LoopCond from f/LoopCond/_14 @CPU:0}
    _cloopf/neg/_2: float, float = Switch(_cloopf/neg/_1, f/LoopCond/_15)
    _cloopf/neg/_3: float = NextIteration(_cloopf/neg/_2:1)

On device 1 the Neg needs the value of every iteration, so its receive and that of the predicate wait for the gate
`_cloopf/neg/_1`. Device 0 computes the predicate itself; its own gate holds back the receive of what Neg made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...errors import InvalidArgumentError
from ..analysis.control_flow import ControlFlowInfo, build_control_flow_info
from ..arrays import positions
from ..columns import SINK_ID, SOURCE_ID
from ..dtypes import DataType
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties, properties_of
from ..ops.record import NodeClass
from .pairs import empty_constant

PREFIX = "_cloop"
_TRUE, _PREDICATE = 1, 1  # the output of Switch for another iteration, the input that decides


def is_gate(graph: Graph, node_id: int) -> bool:
    """Whether a node is the Merge of a control loop."""
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
    """An edge between devices inside a frame: its consumer, the consumer's device, and the Enter of the frame."""

    dst: int
    device: str
    frame: int


class _Place(NamedTuple):
    """Where there is at most one control loop."""

    frame_name: str
    device: str


class _Loops:
    def __init__(self, graph: Graph, new_name: Callable[[str], str]) -> None:
        self.graph = graph
        self.new_name = new_name
        self.info: ControlFlowInfo = build_control_flow_info(graph)
        self.conditions = {
            self.info.frame_name[node.id]: node for node in graph.op_nodes() if node.node_class is NodeClass.LOOP_COND
        }
        self.gates: dict[_Place, Node] = {}

    def add(self) -> None:
        """Adds the loops, and a control edge from the gate of its frame and device to every consumer of a crossing."""
        for crossing in list(self._crossings()):
            self._add_missing_loops(crossing)
        # Again, since the loops have crossings of their own: from a LoopCond to the Switch on each other device.
        for crossing in list(self._crossings()):
            gate = self.gates[_Place(self.info.frame_name[crossing.frame], crossing.device)]
            # The receives do not exist yet. The cut moves these edges to them, one per receive.
            self.graph.add_control_edge(gate, self.graph.node(crossing.dst), allow_duplicates=True)

    def _crossings(self) -> Iterator[_Crossing]:
        """Edges between devices with both ends in one frame other than the root, by id."""
        graph, info = self.graph, self.info
        edges, devices, names = graph.edge_arrays(), graph.assigned_device_indices(), graph.device_names()
        between_nodes = (edges.src > SINK_ID) & (edges.dst > SINK_ID)
        at = positions(between_nodes & (devices[edges.src] != devices[edges.dst]))
        for src, dst in zip(edges.src[at].tolist(), edges.dst[at].tolist(), strict=True):
            frame = self._input_frame(dst)
            _, _, src_frame_name = info.of_outputs(src, self._class(src))
            if src_frame_name and src_frame_name == info.frame_name[frame]:
                yield _Crossing(dst, names[int(devices[dst])], frame)

    def _class(self, node: int) -> NodeClass:
        return self.graph.node_properties(node).op_def.record.node_class

    def _input_frame(self, node: int) -> int:
        """The frame of a node's inputs; those of an Enter are in the frame around the one it opens."""
        return (self.info.parent_frame if self._class(node) is NodeClass.ENTER else self.info.frame)[node]

    def _add_missing_loops(self, crossing: _Crossing) -> None:
        """Adds the control loops of a frame and of the frames around it on one device, from the innermost outwards."""
        graph, info = self.graph, self.info
        frame, inner_enter = crossing.frame, None
        while frame != SOURCE_ID:
            place = _Place(info.frame_name[frame], crossing.device)
            gate, enter = self.gates.get(place), None
            if gate is None:
                enter, gate = self._add_loop(crossing, frame)
                self.gates[place] = gate
            if inner_enter is not None:
                graph.add_edge(gate, 0, inner_enter, 0)
            if enter is None:
                return  # the frames around have their loops since this one was added
            frame, inner_enter = info.parent_frame[frame], enter
        assert inner_enter is not None  # a crossing is never in the root frame
        start = self._add(self.new_name(graph.node_name(crossing.dst)), empty_constant(), crossing.device, SOURCE_ID)
        graph.add_edge(start, 0, inner_enter, 0)

    def _add_loop(self, crossing: _Crossing, frame: int) -> tuple[Node, Node]:
        """The Enter and the gate of a new control loop."""
        graph, name = self.graph, self.info.frame_name[frame]
        condition = self.conditions.get(name)
        if condition is None:
            raise InvalidArgumentError(f"A cross-device loop must have a pivot predicate: {name}", frame=name)
        dst, device = graph.node_name(crossing.dst), crossing.device
        enter, merge, switch, next_iteration = (
            self._add(PREFIX + self.new_name(dst), properties, device, frame) for properties in self._kinds(frame)
        )
        graph.add_edge(merge, 0, switch, 0)
        graph.add_edge(condition, 0, switch, _PREDICATE)
        graph.add_edge(switch, _TRUE, next_iteration, 0)
        graph.add_edge(enter, 0, merge, 0)
        graph.add_edge(next_iteration, 0, merge, 1)
        return enter, merge

    def _kinds(self, frame: int) -> Iterator[NodeProperties]:
        """The properties of Enter, Merge, Switch and NextIteration of a control loop."""
        attrs = self.graph.node(frame).attrs
        tensor = {"T": DataType.FLOAT}
        same_frame = {"frame_name": attrs["frame_name"], "parallel_iterations": attrs["parallel_iterations"]}
        yield properties_of("Enter", {**tensor, **same_frame})
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
