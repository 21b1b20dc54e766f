"""Adds nodes to a graph that is there already, in the short way of `GraphBuilder`.

    e = Extension(graph)
    y = e.op("Mul", e.tensor("x:0"), 2.0)
    e.flush()

Flows in: a graph, op names, inputs, attrs. Flows out: nodes and edges of that graph, and handles. Always holds: new
names clash with none of the graph; nodes that are alike share their properties; what is added waits in columns and
goes into the graph in bulk, when `flush` is called or `target` is read, so that a node costs a few microseconds. Until
then nobody else may add nodes to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from ...errors import InvalidArgumentError
from ..columns import CONTROL_SLOT
from ..dtypes import Array, base_type
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.registry import OpSignature, lookup_op
from .builder import DType, GraphBuilder, Input, node_def_builder
from .handles import Operation, Tensor
from .node_builder import properties_of_node_def

_SMALL_BYTES = 256  # constants up to this size share properties

Flat = list[Tensor | int | float]


class Place(Protocol):
    """A frame that nodes are put into."""

    pivot: Operation
    """what nodes without inputs wait for, so that they are in the frame"""

    def adapted(
        self, op: str, inputs: tuple[Input, ...], attrs: dict[str, Any]
    ) -> tuple[str, tuple[Input, ...], dict[str, Any]]:
        """The op, inputs and attrs that do in the frame what is asked for."""


class Extension(GraphBuilder):
    """A `GraphBuilder` whose nodes go into `graph`."""

    _read_device: Callable[[str], str] = staticmethod(str)  # the devices of a graph stay as they are written

    def __init__(self, graph: Graph, lookup: Callable[[str], OpSignature] = lookup_op) -> None:
        """`lookup` finds signatures; one that knows the graph's functions lets them be used as ops."""
        super().__init__()
        self._target = graph
        self._lookup = lookup
        self._kinds: dict[Hashable, NodeProperties] = {}
        self._ids: dict[str, int] = {}  # of nodes that are new or have been used as inputs
        self._device_ids: dict[tuple[str, str], int] = {}
        self._first_new = graph.num_node_ids
        self._new_names: list[str] = []
        self._new_properties: list[NodeProperties] = []
        self._new_devices: list[int] = []
        self._new_edges: tuple[list[int], list[int], list[int], list[int]] = ([], [], [], [])
        self.place: Place | None = None
        """where new nodes go, None for where their inputs are; set by `within`"""

    @property
    def target(self) -> Graph:
        """The graph, with all that has been added."""
        self.flush()
        return self._target

    def flush(self) -> None:
        """Puts what waits into the graph."""
        if self._new_names:
            self._target.extend_nodes(self._new_names, self._new_properties, self._new_devices)
        if self._new_edges[0]:
            self._target.extend_edges(*self._new_edges)
        for column in (self._new_names, self._new_properties, self._new_devices, *self._new_edges):
            column.clear()
        self._first_new = self._target.num_node_ids

    def op(
        self,
        op: str,
        *inputs: Input,
        name: str = "",
        device: str = "",
        control: Input = (),
        attrs: Mapping[str, Any] | None = None,
        **more_attrs: Any,
    ) -> Operation:
        """Adds a node; arguments and errors as in `GraphBuilder.op`."""
        given = {**attrs, **more_attrs} if attrs else more_attrs
        if self.place is not None:
            op, inputs, given = self.place.adapted(op, inputs, given)
        full_name = self.unique_name(name or op)
        flat: Flat = []
        types = _types(inputs, flat)
        key = None if types is None else _hashable((op, *types, *given.items()) if given else (op, *types))
        properties = self._kinds.get(key) if key is not None else None
        if properties is None:
            signature = self._lookup(op)
            tensors = self._as_tensors(full_name, signature, inputs, given)
            properties = properties_of_node_def(
                node_def_builder(full_name, signature, tensors, given).finalize(), signature
            )
            made = [item for value in tensors for item in (value if isinstance(value, list) else (value,))]
            if key is not None and len(made) == len(flat):
                self._kinds[key] = properties
            return self._add(full_name, properties, made, control, device)
        tensors_only = [item for item in flat if isinstance(item, Tensor)]
        if len(tensors_only) < len(flat):
            wanted = properties.input_types
            tensors_only = [
                item if isinstance(item, Tensor) else self.constant(item, base_type(wanted[port]))
                for port, item in enumerate(flat)
            ]
        return self._add(full_name, properties, tensors_only, control, device)

    def constant(self, value: Any, dtype: DType | None = None, name: str = "Const", **keywords: Any) -> Tensor:
        """A Const; arguments as in `GraphBuilder.constant`. Equal small ones share properties."""
        key = None if keywords else _constant_key(value, dtype)
        properties = self._kinds.get(key) if key is not None else None
        if properties is None:
            made = super().constant(value, dtype, name, **keywords)
            if key is not None:
                self._kinds[key] = self._new_properties[-1]
            return made
        return self._add(self.unique_name(name), properties, (), (), "")[0]

    def move_to(self, device: str, scope: str) -> None:
        """Puts the nodes made from now on on `device`, and "scope/" before their names."""
        self._device, self._scope = device, f"{scope}/"

    @contextmanager
    def within(self, place: Place | None, device: str | None = None) -> Iterator[None]:
        """Puts all nodes made inside into a place, None for where their inputs are, and on a device."""
        outer = self.place, self._device, self._scope
        self.place = place
        if device is not None:
            self._device = device
        try:
            yield
        finally:
            self.place, self._device, self._scope = outer

    def order(self, first: Input, second: Input) -> None:
        """Lets a node wait for another."""
        self._edge(self.id_of(self._node_name(first)), CONTROL_SLOT, self.id_of(self._node_name(second)), CONTROL_SLOT)

    def operation(self, name: str) -> Operation:
        """The node of that name; InvalidArgumentError when the graph has none."""
        node_id = self.id_of(name)
        if node_id >= self._first_new:
            properties = self._new_properties[node_id - self._first_new]
        else:
            properties = self._target.node_properties(node_id)
        return Operation(self, name, properties.op, properties.output_types)

    def handle(self, node: Node) -> Operation:
        """The handle of a node of the graph."""
        properties = node.properties
        return Operation(self, node.name, properties.op, properties.output_types)

    def close_loop(self, merge: Operation, value: Input, port: int = 1) -> None:
        """Makes `value`, the output of a NextIteration, input `port` of a Merge that was made with `later`."""
        tensor = self.tensor(value)
        self._edge(self.id_of(tensor.node), tensor.port, self.id_of(merge.name), port)

    def unique_name(self, name: str) -> str:
        """`name` in the current scope, with "_1", "_2" ... behind it if the graph has a node of that name."""
        wanted = candidate = self._scope + name
        if wanted in self._ids or self._target.find_id(wanted) is not None:
            number = self._next_suffix.get(wanted, 1)
            candidate = f"{wanted}_{number}"
            while candidate in self._ids or self._target.find_id(candidate) is not None:
                number += 1
                candidate = f"{wanted}_{number}"
            self._next_suffix[wanted] = number + 1
        return candidate

    def graph(self) -> Graph:
        """The graph, its loose ends tied."""
        self.target.fix_source_and_sink_edges()
        return self._target

    def id_of(self, name: str) -> int:
        """The id of the node of that name; InvalidArgumentError when the graph has none."""
        node_id = self._ids.get(name)
        if node_id is None:
            node_id = self._target.find_id(name)
            if node_id is None:
                raise InvalidArgumentError(f"{name!r} is no node of this graph")
            self._ids[name] = node_id
        return node_id

    def _edge(self, src: int, src_output: int, dst: int, dst_input: int) -> None:
        for column, value in zip(self._new_edges, (src, src_output, dst, dst_input), strict=True):
            column.append(value)

    def _device_id(self, device: str) -> int:
        key = self._device, device
        if key not in self._device_ids:
            self._device_ids[key] = self._target.intern_device(self._joined_device(device))
        return self._device_ids[key]

    def _add(
        self, name: str, properties: NodeProperties, inputs: Sequence[Tensor], control: Input, device: str
    ) -> Operation:
        ids = self._ids
        node_id = ids[name] = self._first_new + len(self._new_names)
        self._new_names.append(name)
        self._new_properties.append(properties)
        self._new_devices.append(self._device_id(device))
        src, src_output, dst, dst_input = self._new_edges
        for port, tensor in enumerate(inputs):
            source = tensor.node
            if source:  # else a back edge, that `close_loop` adds
                src.append(ids[source] if source in ids else self.id_of(source))
                src_output.append(tensor.port)
                dst.append(node_id)
                dst_input.append(port)
        if not inputs and not control and self.place is not None:
            control = (self.place.pivot,)
        if control or self._control:
            for source in dict.fromkeys((*self._control, *self._node_names(control))):
                self._edge(self.id_of(source), CONTROL_SLOT, node_id, CONTROL_SLOT)
        return Operation(self, name, properties.op_def.name, properties.output_types)


def _types(inputs: Sequence[Input], flat: Flat) -> list[Hashable] | None:
    """The types of inputs, which go into `flat`; None where one is neither tensor nor number."""
    types: list[Hashable] = []
    for value in inputs:
        if isinstance(value, Tensor):
            types.append(value.dtype)
            flat.append(value)
        elif isinstance(value, Operation):
            types.append(value.output_types[0])
            flat.append(value[0])
        elif isinstance(value, (int, float)):
            types.append(type(value).__name__)
            flat.append(value)
        elif isinstance(value, (list, tuple)) and all(isinstance(item, Tensor) for item in value):
            types.append(tuple([item.dtype for item in value]))
            flat.extend(value)
        else:
            return None
    return types


def _hashable(key: tuple[Hashable, ...]) -> Hashable | None:
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _constant_key(value: Any, dtype: DType | None) -> Hashable | None:
    if isinstance(value, (int, float)):
        return "Const", type(value), repr(value), dtype
    if isinstance(value, (list, tuple)) and all(type(item) is int for item in value):
        return "Const", list, tuple(value), dtype
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object and value.nbytes <= _SMALL_BYTES:
        array: Array = np.asarray(value)
        return "Const", array.dtype.str, array.shape, array.tobytes(), dtype
    return None
