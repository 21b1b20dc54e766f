"""The facts that the placer needs about a node, once per kind of node.

Two nodes are of one kind when they have the same op and agree in the attrs that decide port types and kernels. So a
hundred thousand constants with different values need one look-up of kernels, and their values are not decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...graph.dtypes import DataType, is_ref
from ...graph.graph import Graph
from ...graph.ops.kernel_facts import deciding_attrs, find_kernel
from ...graph.ops.properties import NodeProperties, split_entry
from ...graph.ops.record import Calls, NodeClass
from ...graph.ops.registry import OpSignature, find_op
from .colocation import CLASS_ATTR, needs_source_device

_KEY_TAG = 0x0A  # first byte of a serialised attr entry, as protobuf writers make it; then a length byte and the name
_MAX_PLAIN_LENGTH = 0x80
_CLASS_NAME = CLASS_ATTR.encode()
_CALLS = (Calls.CALL, Calls.GRADIENT)  # these run anywhere; loops and conditionals have kernels


@dataclass(frozen=True, slots=True, eq=False)
class NodeKind:
    """One kind of node: device types with a kernel, best first, and which rules of the placer apply to it."""

    types: tuple[str, ...]
    is_generator: bool
    is_resource_generator: bool
    is_metadata: bool
    has_class: bool
    follows_inputs: bool
    example: NodeProperties


def kinds_of(graph: Graph, device_types: Sequence[str]) -> tuple[list[NodeKind], list[int]]:
    """All kinds of nodes in the graph, and the index of the kind by node id (-1 where a node was removed)."""
    properties = graph.all_properties()
    kinds: list[NodeKind] = []
    by_key: dict[tuple[OpSignature, bool, tuple[bytes, ...]], int] = {}
    index: dict[NodeProperties | None, int] = {None: -1}
    relevant: dict[OpSignature, frozenset[bytes]] = {}
    for unique in dict.fromkeys(properties):  # properties compare by identity
        if unique is None:
            continue
        if unique.op_def not in relevant:
            relevant[unique.op_def] = _relevant_attrs(unique.op_def, device_types)
        key = unique.op_def, *_split(unique.entries, relevant[unique.op_def])
        position = by_key.get(key)
        if position is None:
            position = by_key[key] = len(kinds)
            kinds.append(_kind(unique, key[1], device_types))
        index[unique] = position
    return kinds, list(map(index.__getitem__, properties))


def _relevant_attrs(op_def: OpSignature, device_types: Sequence[str]) -> frozenset[bytes]:
    """Names of the attrs that port types or kernels depend on."""
    args = op_def.input_args + op_def.output_args
    names = {name for arg in args for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    names.update(name for kind in device_types for name in deciding_attrs(op_def.name, kind))
    return frozenset(name.encode() for name in names)


def _split(entries: Iterable[bytes], relevant: frozenset[bytes]) -> tuple[bool, tuple[bytes, ...]]:
    """Whether `_class` is among the serialised attr entries, and those that are relevant."""
    kept, has_class = [], False
    for entry in entries:
        plain = entry[0] == _KEY_TAG and entry[1] < _MAX_PLAIN_LENGTH
        name = entry[2 : 2 + entry[1]] if plain else split_entry(entry)[0].encode()
        if name in relevant:
            kept.append(entry)
        elif name == _CLASS_NAME:
            has_class = True
    return has_class, tuple(kept)


def supported_types(properties: NodeProperties, device_types: Sequence[str]) -> tuple[str, ...]:
    """Those of `device_types` that have a kernel for the node; calls of functions run anywhere."""
    if properties.op_def.record.calls in _CALLS or find_op(properties.op) is not properties.op_def:
        return tuple(device_types)
    return tuple(kind for kind in device_types if find_kernel(properties.op, properties.attrs, kind) is not None)


def _kind(properties: NodeProperties, has_class: bool, device_types: Sequence[str]) -> NodeKind:
    outputs, num_inputs = properties.output_types, len(properties.input_types)
    is_source = num_inputs == 0 and len(outputs) == 1
    return NodeKind(
        types=supported_types(properties, device_types),
        is_generator=is_source and not is_ref(outputs[0]),
        is_resource_generator=is_source and (is_ref(outputs[0]) or outputs[0] == DataType.RESOURCE),
        is_metadata=properties.op_def.record.node_class is NodeClass.METADATA,
        has_class=has_class,
        follows_inputs=any(needs_source_device(properties, port) for port in range(num_inputs)),
        example=properties,
    )
