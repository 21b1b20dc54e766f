"""Constant folding: nodes with the same value in every step are computed once, and replaced by Const nodes.

The Const is named after the node that it replaces, with "__cf__" in the name, has its device, and waits for the control
inputs of all nodes that were folded into it. Nodes without consumers are left to `dead_nodes`. If the evaluation fails
nothing is folded, so the step fails as it would have without folding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ....errors import InvalidArgumentError, PartitaError
from ...columns import CONTROL_SLOT
from ...device_name import parse_full_name
from ...dtypes import Array, DataType
from ...edge_ends import Output
from ...graph import Graph
from ...node import Node
from ...ops.device_kinds import CPU, device_kind
from ...ops.kernel_facts import find_kernel
from ...ops.memory_types import memory_types
from ...ops.properties import NodeProperties
from ...protos import AttrValue
from ...tensor import numpy_to_tensor
from ..selection import MAX_CONSTANT_BYTES
from .foldable import Foldable, ShapesByNode

_STRING_BYTES = 24  # size of a string object in a tensor, without its characters
_WITHOUT_CONSTANTS = (DataType.RESOURCE, DataType.VARIANT)  # element types that no Const can have


class Evaluator(Protocol):
    """Runs graphs of constants on a CPU."""

    def can_run(self, properties: NodeProperties) -> bool:
        """Whether there is a kernel for such nodes that runs without a session."""

    def run(self, graph: Graph, fetches: Sequence[str]) -> Sequence[Array]:
        """Values of tensors of a graph without feeds; raises PartitaError."""


def fold_constants(
    graph: Graph,
    evaluator: Evaluator,
    *,
    shapes: ShapesByNode | None = None,
    max_constant_bytes: int = MAX_CONSTANT_BYTES,
) -> Graph:
    """The graph with constants in place of foldable nodes; the same object if nothing changes.

    With `shapes` (node name -> shape per output) shape ops are folded too. Values of more than `max_constant_bytes` are
    not folded.
    """
    foldable = Foldable(graph, evaluator.can_run, shapes or {})
    outputs = _to_fetch(graph, foldable)
    if not outputs:
        return graph
    try:
        values = evaluator.run(*_constant_graph(graph, foldable, outputs))
    except PartitaError:
        return graph
    result = graph.clone()
    number = 0
    for output, value in zip(outputs, values, strict=True):
        if _may_replace(graph.node(output[0]), output[1], value, max_constant_bytes):
            _replace(result, output, value, sorted(foldable.waits_for(output[0])), number)
            number += 1
    return result if number else graph


def _to_fetch(graph: Graph, foldable: Foldable) -> list[Output]:
    """The outputs of foldable nodes that other nodes read, sorted by node name; Const nodes are left out."""
    edges = graph.edge_arrays()
    computed = foldable.flags & ~foldable.is_const
    leaves = computed[edges.src] & ~foldable.flags[edges.dst] & (edges.src_output != CONTROL_SLOT)
    outputs = set(zip(edges.src[leaves].tolist(), edges.src_output[leaves].tolist(), strict=True))
    return sorted(outputs, key=lambda output: (graph.node_name(output[0]), output[1]))


def _constant_graph(graph: Graph, foldable: Foldable, outputs: Sequence[Output]) -> tuple[Graph, list[str]]:
    """The foldable ancestors of some outputs as a graph of their own, and the names of the outputs in it.

    A shape op with a known value becomes one Const per output there.
    """
    folded, copies = Graph(), dict[int, list[tuple[Node, int]]]()
    for node in map(graph.node, _ancestors(graph, foldable, [node for node, _ in outputs])):
        if node.id in foldable.of_shapes:
            known = foldable.of_shapes[node.id]
            name = folded.new_name
            constants = [_add_const(folded, name(node.name), node, i, value) for i, value in enumerate(known)]
            copies[node.id] = [(constant, 0) for constant in constants]
            continue
        copy = folded.add_node_with(node.name, node.properties)
        copies[node.id] = [(copy, port) for port in range(node.num_outputs)]
        for edge in node.input_edges():
            folded.add_edge(*copies[edge.src.id][edge.src_output], copy, edge.dst_input)
    folded.fix_source_and_sink_edges()
    return folded, [f"{node.name}:{port}" for node, port in (copies[node][port] for node, port in outputs)]


def _ancestors(graph: Graph, foldable: Foldable, nodes: Sequence[int]) -> list[int]:
    """Those nodes and all foldable nodes that they depend on, inputs first."""
    order: dict[int, None] = {}
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node < 0 or node in order:
            order.setdefault(abs(node))
            continue
        stack.append(-node)
        if node not in foldable.of_shapes:
            ends = (graph.edge_ends(edge) for edge in graph.in_edge_ids(node))
            stack += [src for src, port, _, _ in ends if port != CONTROL_SLOT]
    return list(order)


def _may_replace(node: Node, port: int, value: Array, max_bytes: int) -> bool:
    """Whether a value may become a Const on the node's device: it is small, and in the memory where constants are."""
    dtype = node.output_types[port]
    size = sum(map(len, value.flat)) + _STRING_BYTES * value.size if dtype is DataType.STRING else value.nbytes
    if size > max_bytes or dtype in _WITHOUT_CONSTANTS:
        return False
    kind = _device_type(node)
    if not device_kind(kind).own_memory:
        return True
    on_host = memory_types(node.properties, kind)[1][port]
    return on_host == (dtype is DataType.INT32) and find_kernel("Const", {"dtype": dtype}, kind) is not None


def _device_type(node: Node) -> str:
    try:
        return parse_full_name(node.device).type or CPU.name
    except InvalidArgumentError:
        return CPU.name


def _replace(graph: Graph, output: Output, value: Array, waits_for: Sequence[int], number: int) -> None:
    """Adds a Const and redirects all consumers of an output to it."""
    node = graph.node(output[0])
    constant = _add_const(graph, f"{graph.new_name(node.name)}__cf__{number}", node, output[1], value)
    for edge in [edge for edge in node.out_edges() if edge.src_output == output[1]]:
        graph.add_edge(constant, 0, edge.dst, edge.dst_input)
        graph.remove_edge(edge)
    for source in map(graph.node, waits_for):
        graph.add_control_edge(source, constant)
    if not waits_for:
        graph.add_control_edge(graph.source, constant, allow_duplicates=True)


def _add_const(graph: Graph, name: str, node: Node, port: int, value: Array) -> Node:
    """Adds a Const with the element type and the device of an output."""
    dtype = node.output_types[port]
    attrs = {"dtype": dtype, "value": AttrValue(tensor=numpy_to_tensor(np.asarray(value), dtype))}
    constant = graph.add_node(name, "Const", attrs, device=node.requested_device)
    constant.assigned_device = node.assigned_device
    return constant
