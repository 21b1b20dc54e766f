"""Shared steps of replacing one conditional or loop by simpler nodes.

New nodes are named after the replaced one, numbered in the order in which names are drawn, and are on its device unless
another is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...errors import InvalidArgumentError
from ..builder.node_builder import NodeBuilder
from ..graph import Graph
from ..library.calls import MULTI_DEVICE_ATTR, function_attr
from ..node import Node
from ..ops.registry import OpSignature
from ..protos import NameAttrList

NodeOutput = tuple[Node, int]


class Expansion:
    """One node that is being replaced in place; with `fetchable` a node of its name keeps its outputs."""

    def __init__(self, graph: Graph, node: Node, *, fetchable: bool) -> None:
        self.graph = graph
        self.node = node
        self.fetchable = fetchable
        self.name = node.name
        self.device = node.requested_device
        self.sources: list[NodeOutput] = [(edge.src, edge.src_output) for edge in node.input_edges()]

    def new_name(self, what: str) -> str:
        """The next name for a node of the role `what`."""
        return self.graph.new_name(f"{self.name}/{what}")

    def builder(self, name: str, op: str | OpSignature, *inputs: NodeOutput, device: str | None = None) -> NodeBuilder:
        """The builder of a node on the device of the replaced node, or on `device`."""
        builder = NodeBuilder(name, op).device(self.device if device is None else device)
        for source in inputs:
            builder.input(*source)
        return builder

    def add(
        self,
        what: str,
        op: str,
        *inputs: NodeOutput,
        device: str | None = None,
        attrs: Mapping[str, Any] = MappingProxyType({}),  # values in Python form, whatever the op declares
    ) -> Node:
        """Adds a node with the next name for its role."""
        builder = self.builder(self.new_name(what), op, *inputs, device=device)
        for name, value in attrs.items():
            builder.attr(name, value)
        return builder.finalize(self.graph)

    def beside(self, node: Node, builder: NodeBuilder) -> Node:
        """Adds a node on the device that another requests and, where that is placed already, on the one it has."""
        added = builder.device(node.requested_device).finalize(self.graph)
        added.assigned_device = node.assigned_device
        return added

    def merge(self, what: str, values: Sequence[NodeOutput]) -> NodeBuilder:
        """A Merge with the next name for its role."""
        return self.builder(self.new_name(what), "Merge").input_list(values)

    def function(self, attr: str) -> NameAttrList:
        """The function in an attr of the replaced node."""
        if attr not in self.node.attrs:
            raise InvalidArgumentError(f"{attr.replace('_', ' ').capitalize()} function missing", node=self.name)
        return function_attr(self.node.properties, attr)

    def call(self, name: str, function: NameAttrList, inputs: Sequence[NodeOutput]) -> Node:
        """Adds a call that is to be inlined as a function over several devices."""
        builder = self.builder(name, self.graph.functions.signature(function.name) or function.name, *inputs)
        builder.attr(MULTI_DEVICE_ATTR, value=True)
        for key, value in function.attr.items():
            builder.attr(key, value)
        return builder.finalize(self.graph)

    def replace(self, outputs: Sequence[NodeOutput], executed: Node) -> None:
        """Connects consumers to `outputs`, and control edges to `executed`, then removes the node.

        Raises InvalidArgumentError when a consumer reads an output that the node's functions do not have.
        """
        for edge in self.node.out_edges():
            if edge.is_control:
                self.graph.add_control_edge(executed, edge.dst)
            elif edge.src_output < len(outputs):
                self.graph.add_edge(*outputs[edge.src_output], edge.dst, edge.dst_input)
            else:
                raise InvalidArgumentError(
                    f"output {edge.src_output} is read by {edge.dst.name!r}, but the functions of this node give "
                    f"{len(outputs)}; let its attrs say how many there are",
                    node=self.name,
                    op=self.node.op,
                )
        self.graph.remove_node(self.node)
