"""Adds nodes to an existing graph, with the interface of `GraphBuilder`.

    e = Extension(graph)
    y = e.op("Mul", e.tensor("x:0"), 2.0)
    e.flush()

New names are unique in the graph. Nodes of one kind share their properties, and only the first of them is checked. New
nodes wait in columns and are added in bulk by `flush`, or when `target` is read, so that a node costs a few
microseconds; until then nothing else may add nodes to the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from ..columns import CONTROL_SLOT
from ..dtypes import Array, base_type
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.registry import OpSignature, lookup_op
from .front_end import DType, NodeMaker
from .handles import Input, Operation, Tensor
from .sinks import ColumnSink

_SMALL_BYTES = 256  # constants up to this size share properties

Flat = list[Tensor | int | float]


class LoopFrame(Protocol):
    """A loop frame that new nodes are put into."""

    pivot: Operation
    """the node that nodes without inputs wait for, so that they are in the frame"""

    def adapted(
        self, op: str, inputs: tuple[Input, ...], attrs: dict[str, Any]
    ) -> tuple[str, tuple[Input, ...], dict[str, Any]]:
        """The op, inputs and attrs that compute inside the frame what is asked for."""


class Extension(NodeMaker):
    """Makes nodes of `graph`."""

    _read_device: Callable[[str], str] = staticmethod(str)  # a graph's device names are not normalised

    def __init__(self, graph: Graph, lookup: Callable[[str], OpSignature] = lookup_op) -> None:
        """`lookup` finds signatures; one that knows the graph's functions allows them as ops."""
        self._columns = ColumnSink(graph)
        super().__init__(self._columns)
        self._target = graph
        self._lookup = lookup
        self._kinds: dict[Hashable, NodeProperties] = {}
        self._device_ids: dict[tuple[str, str], int] = {}
        self.place: LoopFrame | None = None
        """the frame of new nodes, None for that of their inputs; set by `within`"""

    @property
    def target(self) -> Graph:
        """The graph, after a `flush`."""
        self.flush()
        return self._target

    def flush(self) -> None:
        """Adds the waiting nodes and edges to the graph."""
        self._columns.flush()

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
        """Adds a node; arguments and errors as in `NodeMaker.op`."""
        all_attrs = {**attrs, **more_attrs} if attrs else more_attrs
        if self.place is not None:
            op, inputs, all_attrs = self.place.adapted(op, inputs, all_attrs)
        flat: Flat = []
        types = _types(inputs, flat)
        key = None if types is None else _hashable((op, *types, *all_attrs.items()) if all_attrs else (op, *types))
        properties = self._kinds.get(key) if key is not None else None
        if properties is None:
            held = self._held(control) if types is not None and not flat else control
            operation = super().op(op, *inputs, name=name, device=device, control=held, attrs=all_attrs)
            properties = self._columns.properties(operation.name)
            if key is not None and len(properties.input_types) == len(flat):
                self._kinds[key] = properties
            return operation
        full_name = self._columns.unique_name(self._scope + (name or op))
        tensors_only = [item for item in flat if isinstance(item, Tensor)]
        if len(tensors_only) < len(flat):
            wanted = properties.input_types
            tensors_only = [
                item if isinstance(item, Tensor) else self.constant(item, base_type(wanted[port]))
                for port, item in enumerate(flat)
            ]
        return self._add(full_name, properties, tensors_only, control, device)

    def constant(self, value: Any, dtype: DType | None = None, name: str = "Const", **keywords: Any) -> Tensor:
        """A Const; arguments as in `NodeMaker.constant`. Equal small constants share properties."""
        key = None if keywords else _constant_key(value, dtype)
        properties = self._kinds.get(key) if key is not None else None
        if properties is None:
            tensor = super().constant(value, dtype, name, **keywords)
            if key is not None:
                self._kinds[key] = self._columns.properties(tensor.node)
            return tensor
        return self._add(self.unique_name(name), properties, (), (), "")[0]

    def move_to(self, device: str, scope: str) -> None:
        """Requests `device` for the nodes made from now on, and puts "scope/" before their names."""
        self._device, self._scope = device, f"{scope}/"

    @contextmanager
    def within(self, place: LoopFrame | None, device: str | None = None) -> Iterator[None]:
        """Puts all nodes made inside the block into a frame, None for that of their inputs, and on a device."""
        outer = self.place, self._device, self._scope
        self.place = place
        if device is not None:
            self._device = device
        try:
            yield
        finally:
            self.place, self._device, self._scope = outer

    def order(self, first: Input, second: Input) -> None:
        """Adds a control edge from the first node to the second."""
        names = self._node_name(first), self._node_name(second)
        self._columns.edge(self.id_of(names[0]), CONTROL_SLOT, self.id_of(names[1]), CONTROL_SLOT)

    def handle(self, node: Node) -> Operation:
        """The handle of a node of the graph."""
        properties = node.properties
        return Operation(self, node.name, properties.op, properties.output_types)

    def graph(self) -> Graph:
        """The graph, after adding the edges from source and to sink."""
        self.target.fix_source_and_sink_edges()
        return self._target

    def id_of(self, name: str) -> int:
        """The id of the node of that name; InvalidArgumentError when the graph has none."""
        return self._columns.id_of(name)

    def _signature(self, op: str) -> OpSignature:
        return self._lookup(op)

    def _held(self, control: Input) -> Input:
        """`control`; in a place, a node without any waits for the pivot."""
        return control if control or self.place is None else (self.place.pivot,)

    def _device_id(self, device: str) -> int:
        key = self._device, device
        if key not in self._device_ids:
            self._device_ids[key] = self._target.intern_device(self._joined_device(device))
        return self._device_ids[key]

    def _add(
        self, name: str, properties: NodeProperties, inputs: Sequence[Tensor], control: Input, device: str
    ) -> Operation:
        if not inputs:
            control = self._held(control)
        waits_for = dict.fromkeys((*self._control, *self._node_names(control))) if control or self._control else ()
        return self._columns.add_alike(self, name, properties, self._device_id(device), inputs, waits_for)


def _types(inputs: Sequence[Input], flat: Flat) -> list[Hashable] | None:
    """The types of inputs, which are appended to `flat`; None if one is neither tensor nor number."""
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
