"""Changes of a graph that are noted first and made together: other inputs, waiting, nodes that become other nodes.

    edits = Edits(graph)
    half = edits.make.op("Mul", edits.tensor((w, 0)), 0.5)
    edits.connect(half[0], consumer, 1)
    edits.finish()

Nodes keep their ids and names, so whatever was known about the graph stays true of nodes that were not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...builder.extension import Extension
from ...builder.handles import Operation, Tensor
from ...columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ...edge_ends import Output
from ...exporter import connected_inputs
from ...graph import Graph
from ...node import Node
from ...ops.properties import properties_of


class Edits:
    """Changes of a copy of `graph`, which has the same ids."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph.clone()
        self.make = Extension(self.graph)
        """makes nodes"""
        self.device = ""
        """the device of nodes that are made now"""
        self._inputs: dict[tuple[int, int], Tensor] = {}
        self._waits: dict[tuple[str, str], None] = {}
        self._attrs: dict[tuple[int, str], Any] = {}
        self._removed_waits: set[tuple[int, int]] = set()
        self._replaced: dict[int, tuple[str, dict[str, Any]]] = {}

    @contextmanager
    def beside(self, node: int) -> Iterator[None]:
        """Makes the nodes of the block on the device of a node that was there before."""
        outer, self.device = self.device, self.graph.requested_device(node)
        try:
            with self.make.within(None, self.device):
                yield
        finally:
            self.device = outer

    def tensor(self, output: Output) -> Tensor:
        """The handle of an output of a node that was there before."""
        node, port = output
        return Tensor(self.make, self.graph.node_name(node), port, self.graph.node_properties(node).output_types[port])

    def connect(self, tensor: Tensor, node: int, port: int) -> None:
        """Makes `tensor` feed an input of a node that was there before."""
        self._inputs[node, port] = tensor

    def wait(self, first: str, second: str) -> None:
        """Lets the second node wait for the first; either may be new."""
        if first != second:
            self._waits[first, second] = None

    def no_longer_wait(self, first: int, second: int) -> None:
        """Removes the control edge between two nodes that were there before."""
        self._removed_waits.add((first, second))

    def again(self, node: int, inputs: Sequence[Tensor], name: str, **attrs: Any) -> Operation:
        """A node like one that was there before, with other inputs and some other attrs, but no control inputs."""
        kind = self.graph.node_properties(node)
        declared = {attr: kind.attrs[attr] for attr in kind.op_def.attrs if attr in kind.attrs}
        arguments: list[Any] = []
        rest = list(inputs)
        for arg in kind.op_def.input_args:
            several = arg.number_attr or arg.type_list_attr
            size = len(kind.attrs[several]) if arg.type_list_attr else int(kind.attrs[several]) if several else 1
            arguments.append(rest[:size] if several else rest[0])
            del rest[:size]
        return self.make.op(kind.op, *arguments, name=name, attrs=declared | attrs)

    def set_attr(self, node: int, attr: str, value: Any) -> None:
        """Gives a node that was there before another value of an attr, in Python form."""
        self._attrs[node, attr] = value

    def become(self, node: int, op: str, *inputs: Tensor, **attrs: Any) -> None:
        """Turns a node into another one of the same name; control edges stay, consumers read its first outputs."""
        self._replaced[node] = op, attrs
        for port, tensor in enumerate(inputs):
            self.connect(tensor, node, port)

    def finish(self) -> Graph:
        """The changed graph."""
        graph = self.make.target
        new = [(self.make.id_of(t.node), t.port, *end) for end, t in self._inputs.items()]
        pairs = [(self.make.id_of(first), self.make.id_of(second)) for first, second in self._waits]
        waits = [(first, CONTROL_SLOT, second, CONTROL_SLOT) for first, second in pairs]
        self._remove_old()
        for node, (op, attrs) in self._replaced.items():
            graph.set_node_properties(node, properties_of(op, attrs))
        for (node, attr), value in self._attrs.items():
            graph.node(node).add_attr(attr, value)
        if new or waits:
            graph.extend_edges(*np.array([*new, *waits], np.int32).T)
        fed = {node for node, _ in self._inputs} | {second for _, second in (*pairs, *self._removed_waits)}
        for node in fed:
            graph.set_requested_inputs(node, connected_inputs(graph, node))
        _join_source_and_sink(graph)
        return graph

    def _remove_old(self) -> None:
        """Removes edges into inputs that are fed anew, and all data inputs of nodes that become others."""
        graph = self.graph
        for first, second in self._removed_waits:
            for edge in graph.node(second).in_edges():
                if edge.is_control and edge.src.id == first:
                    graph.remove_edge(edge)
        changed = {node for node, _ in self._inputs} | set(self._replaced)
        for node in changed:
            for edge in graph.node(node).in_edges():
                end = node, edge.dst_input
                if end in self._inputs or (node in self._replaced and not edge.is_control):
                    graph.remove_edge(edge)


def _join_source_and_sink(graph: Graph) -> None:
    """Makes the edges from source and to sink anew: nodes have got inputs and consumers, and have lost some."""
    for end in (Node(graph, SOURCE_ID), Node(graph, SINK_ID)):
        for edge in end.out_edges() + end.in_edges():
            if edge.id:
                graph.remove_edge(edge)
    graph.fix_source_and_sink_edges()
