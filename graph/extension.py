"""Adds nodes to a graph that is there already, in the short way of `GraphBuilder`.

    e = Extension(graph)
    y = e.op("Mul", e.tensor("x:0"), 2.0)

Flows in: a graph, op names, inputs, attrs. Flows out: nodes and edges of that graph, and handles. Always holds: new
names clash with none of the graph; nodes that are alike share their properties, so that the second of a kind costs a
few microseconds; `finish` ties loose ends to source and sink.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError
from .builder import DType, GraphBuilder, Input, node_def_builder
from .dtypes import Array
from .graph import Graph
from .handles import Operation, Tensor
from .node import Node
from .node_builder import properties_of_node_def
from .ops.registry import OpSignature, lookup_op
from .properties import NodeProperties

_SMALL_BYTES = 256  # constants up to this size share properties


class Extension(GraphBuilder):
    """A `GraphBuilder` whose nodes go straight into `graph`."""

    def __init__(self, graph: Graph, lookup: Callable[[str], OpSignature] = lookup_op) -> None:
        """`lookup` finds signatures; one that knows the graph's functions lets them be used as ops."""
        super().__init__()
        self.target = graph
        self._lookup = lookup
        self._kinds: dict[Hashable, NodeProperties] = {}

    def op(
        self,
        op: str,
        *inputs: Input,
        name: str = "",
        device: str = "",
        control: Sequence[Input] = (),
        attrs: Mapping[str, Any] | None = None,
        **more_attrs: Any,
    ) -> Operation:
        """Adds a node; arguments and errors as in `GraphBuilder.op`."""
        given = {**attrs, **more_attrs} if attrs else more_attrs
        full_name = self.unique_name(name or op)
        key = self._key(op, inputs, given)
        properties = self._kinds.get(key)
        if properties is None:
            signature = self._lookup(op)
            tensors = self._as_tensors(full_name, signature, inputs, given)
            node_def = node_def_builder(full_name, signature, tensors, given).finalize()
            inputs = tuple(tensors)
            properties = properties_of_node_def(node_def, signature)
            if key is not None:
                self._kinds[key] = properties
        return self._add(full_name, properties, inputs, control, device)

    def constant(self, value: Any, dtype: DType | None = None, name: str = "Const", **keywords: Any) -> Tensor:
        """A Const; arguments as in `GraphBuilder.constant`. Equal small ones share properties."""
        key = (type(value), value, dtype) if isinstance(value, (int, float)) else _array_key(value, dtype)
        properties = self._kinds.get(key)
        if properties is None or keywords:
            made = super().constant(value, dtype, name, **keywords)
            node = self.target.find_node(made.node)
            if key is not None and node is not None and not keywords:
                self._kinds[key] = node.properties
            return made
        return self._add(self.unique_name(name), properties, (), (), "")[0]

    def operation(self, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when the graph has none."""
        node = self.target.find_node(name)
        if node is None:
            raise InvalidArgumentError(f"{name!r} is no node of this graph")
        return self.handle(node)

    def handle(self, node: Node) -> Operation:
        """The handle of a node of the graph."""
        properties = node.properties
        return Operation(self, node.name, properties.op, properties.output_types)

    def close_loop(self, merge: Operation, value: Input, port: int = 1) -> None:
        """Makes `value`, the output of a NextIteration, input `port` of a Merge that was made with `later`."""
        tensor = self.tensor(value)
        self.target.add_edge(self._node(tensor.node), tensor.port, self._node(merge.name), port)

    def unique_name(self, name: str) -> str:
        """`name` in the current scope, with "_1", "_2" ... behind it if the graph has a node of that name."""
        wanted = self._scope + name
        number = self._next_suffix.get(wanted, 0)
        candidate = f"{wanted}_{number}" if number else wanted
        while self.target.find_node(candidate) is not None:
            number += 1
            candidate = f"{wanted}_{number}"
        self._next_suffix[wanted] = number + 1
        return candidate

    def graph(self) -> Graph:
        """The graph, its loose ends tied."""
        self.target.fix_source_and_sink_edges()
        return self.target

    def _node(self, name: str) -> Node:
        node = self.target.find_node(name)
        if node is None:
            raise InvalidArgumentError(f"{name!r} is no node of this graph")
        return node

    def _key(self, op: str, inputs: Sequence[Input], attrs: Mapping[str, Any]) -> Hashable | None:
        """What decides the properties of a node; None where that cannot be told without making it."""
        types: list[Hashable] = []
        for value in inputs:
            if isinstance(value, Tensor):
                types.append(value.dtype)
            elif isinstance(value, Operation):
                types.append(value.output_types[0])
            elif isinstance(value, (list, tuple)) and all(isinstance(item, Tensor) for item in value):
                types.append(tuple([item.dtype for item in value]))
            else:
                return None
        try:
            key = op, tuple(types), tuple(attrs.items())
            hash(key)
        except TypeError:
            return None
        return key

    def _add(
        self, name: str, properties: NodeProperties, inputs: Sequence[Input], control: Sequence[Input], device: str
    ) -> Operation:
        graph = self.target
        node = graph.add_node_with(name, properties, device=self._joined_device(device))
        port = 0
        for value in inputs:
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                source = tensor if isinstance(tensor, Tensor) else tensor[0]
                if source.node:  # else a back edge, that `close_loop` adds
                    graph.add_edge(self._node(source.node), source.port, node, port)
                port += 1
        for source_name in dict.fromkeys((*self._control, *map(self._node_name, control))):
            graph.add_control_edge(self._node(source_name), node)
        return Operation(self, name, properties.op, properties.output_types)


def _array_key(value: Any, dtype: DType | None) -> Hashable | None:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object and value.nbytes <= _SMALL_BYTES:
        array: Array = np.asarray(value)
        return "Const", array.dtype.str, array.shape, array.tobytes(), dtype
    return None
