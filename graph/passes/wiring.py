"""What a callable says about its request beyond names: tensors connected to others, and devices of feeds and fetches.

A connection replaces a tensor as a feed does, but by another tensor of the graph. All consumers of `to` read, through
an Identity on the device of `to`, the tensor `from`:

    s -> p, d -> p   with the connection from s to d   becomes   s -> _identity_d_0 -> p, s -> p

Connections are made after all feeds, in their order, and read what the graph computes, also where that tensor is fed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InvalidArgumentError
from ..dtypes import base_type, dtype_name, is_ref
from ..tensor_id import TensorId, parse_tensor_name

if TYPE_CHECKING:
    from ..graph import Graph
    from ..node import Node


class Wiring(NamedTuple):
    """Connections as pairs of tensor names, from and to; full device names by position, "" for the client's device.

    No devices at all mean that every feed, or fetch, is on the client's device.
    """

    connections: tuple[tuple[str, str], ...] = ()
    feed_devices: tuple[str, ...] = ()
    fetch_devices: tuple[str, ...] = ()

    def feed_device(self, position: int, client: str) -> str:
        """The device of a feed; `client` is that of the client."""
        return (self.feed_devices[position] if self.feed_devices else "") or client

    def fetch_device(self, position: int, client: str) -> str:
        """The device of a fetch; `client` is that of the client."""
        return (self.fetch_devices[position] if self.fetch_devices else "") or client


NO_WIRING = Wiring()


def connection_node_name(tensor: TensorId) -> str:
    """The name of the Identity that replaces a tensor."""
    return f"_identity_{tensor.node}_{tensor.index}"


def connection_sources(graph: Graph, connections: Sequence[tuple[str, str]]) -> list[tuple[Node, int]]:
    """The node and the output that each connection reads. InvalidArgumentError for those that do not exist."""
    sources = []
    for source_text, target_text in connections:
        tensor = parse_tensor_name(source_text)
        node = graph.find_node(tensor.node)
        if node is None:
            raise InvalidArgumentError(f'Requested tensor connection from unknown node: "{target_text}".')
        if tensor.index >= node.num_outputs:
            raise InvalidArgumentError(
                f'Requested tensor connection from unknown edge: "{target_text}" '
                f"(actual number of outputs = {node.num_outputs})."
            )
        if tensor.index < 0:
            raise InvalidArgumentError(
                f"Attempt to add output {tensor.index} of {node.name} not in range [0, {node.num_outputs}) to node "
                "with type Identity"
            )
        sources.append((node, tensor.index))
    return sources


def add_connection(graph: Graph, source: tuple[Node, int], target: Node, output: int) -> Node:
    """Adds the Identity that replaces an output of `target`, on the device of `target`; nothing reads it yet."""
    node, source_output = source
    dtype = base_type(node.output_types[source_output])
    name = connection_node_name(TensorId(target.name, output))
    identity = graph.add_node(name, "Identity", {"T": dtype}, device=target.requested_device)
    identity.assigned_device = target.assigned_device
    graph.add_edge(node, source_output, identity, 0)
    return identity


def check_connections(graph: Graph, wiring: Wiring) -> None:
    """Raises InvalidArgumentError for a node of a pruned graph that would read another type than before."""
    for _, target in wiring.connections:
        identity = graph.find_node(connection_node_name(parse_tensor_name(target)))
        for edge in () if identity is None else identity.out_edges():
            if edge.is_control:
                continue
            given, expected = edge.src.output_types[0], edge.dst.input_types[edge.dst_input]
            if given != expected or is_ref(expected):
                raise InvalidArgumentError(
                    f"Input {edge.dst_input} of node {edge.dst.name} was passed {dtype_name(given)} from "
                    f"{edge.src.name}:0 incompatible with expected {dtype_name(expected)}.",
                    node=edge.dst.name,
                    op=edge.dst.op,
                )
