"""The forward and backward pass of a training graph, and what comes after what.

The forward pass is what the loss depends on. A node of the backward pass reads a gradient, or prepares something that
is combined with a gradient:

    y = Tanh(x); loss = Sum(y * y)            forward, of which the segment {y} is repeated
    accuracy = Mean(Equal(y, labels))         no backward pass: nothing behind it reads a gradient
    s = Square(y)                             backward: prepares
    d_y = Mul(2 y, d_loss)                    backward: the gradient that the segment waits for
    d_x = Mul(d_y, 1 - s)                     backward: combines both
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from ...errors import NotFoundError
from ..analysis.control_flow import build_control_flow_info, has_frames
from ..analysis.data_edges import DataEdges
from ..columns import SINK_ID, SOURCE_ID
from ..edge_ends import Output
from ..graph import Graph
from ..ops.record import NodeClass, State
from ..printer import topological_order
from ..suggestions import suggestion
from ..tensor_id import parse_tensor_name

Neighbours = Callable[[int], Iterable[int]]


class TrainingFlow:
    """The passes of one training graph; edges of nodes that are added later are told by `add_edge`."""

    def __init__(self, graph: Graph, loss: str) -> None:
        """NotFoundError for a loss that the graph does not have."""
        self.graph = graph
        self.data = DataEdges(graph)
        self.loss = self._maker(tensor_of(graph, loss, "loss"))
        edges = graph.edge_arrays()
        self.forward: set[int] = reached([self.loss], lambda node: [source for source, _ in self.data.sources(node)])
        self._consumers: dict[int, list[int]] = {}
        producers: dict[int, list[int]] = {}
        for src, dst in zip(edges.src.tolist(), edges.dst.tolist(), strict=True):
            if src != SOURCE_ID and dst != SINK_ID:
                self._consumers.setdefault(src, []).append(dst)
                producers.setdefault(dst, []).append(src)
        self.whole_order = order = topological_order(graph)
        """all nodes; edges that close a loop are left out"""
        self.order = [node for node in order if node in self.forward]
        self.position = {node: number for number, node in enumerate(self.order)}
        self._uncertain = _framed(graph) | self._conditional(order, producers)
        self.sources_of_added: list[int] = []
        """where edges that were added come from"""

    def _maker(self, tensor: Output) -> int:
        """The node that makes a tensor: of an inlined call what made its result, not the node that has all results."""
        node, port = tensor
        while self.graph.node_properties(node).op_def.record.regroups:
            node, port = self.data.sources(node)[port]
        return node

    def readers(self, node: int) -> list[int]:
        """The nodes that read an output of `node`."""
        return [reader for reader, _ in self.data.readers(node)]

    def add_edge(self, source: int, consumer: int) -> None:
        """Notes an edge of a node that was added."""
        self.sources_of_added.append(source)
        self._consumers.setdefault(source, []).append(consumer)

    def consumers(self, node: int) -> Sequence[int]:
        """The nodes that read an output of a node or wait for it, added ones included."""
        return self._consumers.get(node, ())

    def behind(self, nodes: Iterable[int]) -> set[int]:
        """These nodes and all that wait for one of them, added edges included."""
        return reached(nodes, lambda node: self._consumers.get(node, ()))

    def always_runs(self, node: int) -> bool:
        """Whether a node runs once per step: it is in no loop of plain nodes, and in no branch of a conditional."""
        return node not in self._uncertain

    @cached_property
    def of_variables(self) -> set[int]:
        """Forward nodes whose values follow from those of variables, and of constants: the same for every batch."""
        found, constant = set[int](), set[int]()
        for node in self.order:
            properties, sources = self.graph.node_properties(node), {source for source, _ in self.data.sources(node)}
            record = properties.op_def.record
            if not sources and record.node_class is NodeClass.CONSTANT:
                constant.add(node)
            elif record.state is State.VARIABLE or record.node_class is NodeClass.VARIABLE:
                found.add(node)
            elif sources and not properties.op_def.is_stateful and record.calls is None and sources <= found | constant:
                (constant if sources <= constant else found).add(node)
        return found

    def _conditional(self, order: Sequence[int], producers: dict[int, list[int]]) -> set[int]:
        """Nodes that may not run: those between a Switch and its Merge."""
        classes = self.graph.node_classes()
        if NodeClass.SWITCH not in classes:
            return set()
        depth: dict[int, int] = {}
        for node in order:
            inner = max((depth.get(source, 0) for source in producers.get(node, ())), default=0)
            kind = self.graph.node(node).node_class
            depth[node] = max(inner + (kind is NodeClass.SWITCH) - (kind is NodeClass.MERGE), 0)
        return {node for node, inner in depth.items() if inner}


def reached(starts: Iterable[int], following: Neighbours) -> set[int]:
    """All that is reached from `starts`, these included, by steps that `following` gives."""
    seen = set(starts)
    waiting = list(seen)
    while waiting:
        for node in following(waiting.pop()):
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen


def tensor_of(graph: Graph, name: str, what: str) -> Output:
    """Node and port of the tensor of a name; NotFoundError, which says `what` it is for, when there is none."""
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    if node is None:
        raise NotFoundError(
            f"{what} {name!r}: the graph has no node of that name{suggestion(tensor.node, names(graph))}"
        )
    if not 0 <= tensor.index < node.num_outputs:
        raise NotFoundError(f"{what} {name!r}: {node.name!r} has {node.num_outputs} outputs", node=node.name)
    return node.id, tensor.index


def names(graph: Graph) -> list[str]:
    """The names of all nodes."""
    return [node.name for node in graph.op_nodes()]


def _framed(graph: Graph) -> set[int]:
    """The nodes in loops of plain nodes."""
    if not has_frames(graph):
        return set()
    frames = build_control_flow_info(graph).frame
    return {node for node in graph.node_ids() if frames[node] != SOURCE_ID}
