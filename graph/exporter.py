"""Graph -> GraphDef.

Nodes come by ascending id, without source and sink. Inputs follow the edges: data inputs by port, then control inputs
sorted by source name; the input strings that a node was made from only fill ports without an edge (back edges that do
not exist yet). The device is the assigned one, or the requested one before placement.
"""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

from ..collector import collector_paused
from ..errors import InvalidArgumentError
from .columns import CONTROL_SLOT, SINK_ID, SOURCE_ID, Columns
from .debug_info import debug_info_field
from .edge_ends import by_consumer
from .protos import GraphDef, LazyGraphDef, LazyNodeDef

_AT_ONCE = 2_000  # nodes to copy, or to free, in one call, during which no other thread runs


def requested_inputs(graph: Columns, node_id: int) -> list[str]:
    """The input strings of the NodeDef that a node was made from, or those that its edges determine."""
    strings = graph.given_inputs(node_id)
    return connected_inputs(graph, node_id) if strings is None else list(strings)


def connected_inputs(graph: Columns, node_id: int) -> list[str]:
    """The input strings that the edges of a node determine: data inputs by port, then control inputs."""
    ends = [graph.edge_ends(e) for e in graph.in_edge_ids(node_id)]
    data = sorted((end for end in ends if end[3] != CONTROL_SLOT), key=lambda end: end[3])
    control = [end for end in ends if end[3] == CONTROL_SLOT and end[0] != SOURCE_ID]
    names = [_tensor_name(graph.node_name(src), port) for src, port, _, _ in data]
    return names + ["^" + graph.node_name(src) for src, _, _, _ in control]


def _tensor_name(node: str, port: int) -> str:
    return node if port == 0 else f"{node}:{port}"


def _input_strings(graph: Columns, first: int) -> dict[int, list[str]]:
    """Data inputs by port and control inputs by name, for every node from `first` on that has any."""
    edges = graph.edge_arrays()
    chosen = np.flatnonzero((edges.dst >= first) & (edges.src != SOURCE_ID) & (edges.dst != SINK_ID))
    order = chosen[by_consumer(edges.dst[chosen], edges.dst_input[chosen])]
    names = graph.names()
    inputs: dict[int, list[str]] = {}
    columns = edges.src, edges.src_output, edges.dst, edges.dst_input
    for begin in range(0, len(order), _AT_ONCE):
        rows = order[begin : begin + _AT_ONCE]
        for src, output, dst, port in zip(*(column[rows].tolist() for column in columns), strict=True):
            strings = inputs.setdefault(dst, [])
            if port == CONTROL_SLOT:
                strings.append(f"^{names[src]}")
                continue
            _fill_gap(graph, dst, strings, port)
            strings.append(_tensor_name(str(names[src]), output))
    return inputs


def _fill_gap(graph: Columns, node_id: int, strings: list[str], upto: int) -> None:
    """Appends strings for the unconnected ports below `upto`: those that the node was made with, else empty ones."""
    written = [text for text in graph.given_inputs(node_id) or () if not text.startswith("^")]
    while len(strings) < upto:
        strings.append(written[len(strings)] if len(strings) < len(written) else "")


def _node_def(graph: Columns, node_id: int, inputs: list[str]) -> LazyNodeDef:
    properties = graph.node_properties(node_id)
    data = [name for name in inputs if not name.startswith("^")]
    if len(data) < len(properties.input_types):
        _fill_gap(graph, node_id, data, len(properties.input_types))
    control = sorted(name for name in inputs if name.startswith("^"))
    device = graph.assigned_device(node_id) or graph.requested_device(node_id)
    node = LazyNodeDef(
        name=graph.node_name(node_id), op=properties.op, input=data + control, device=device, attr=properties.entries
    )
    if properties.remarks:
        node.MergeFromString(properties.remarks)
    return node


@collector_paused()
def to_graph_def(graph: Columns, from_node_id: int = SINK_ID + 1) -> GraphDef:
    """The GraphDef of the nodes with an id of at least `from_node_id` (source and sink never included).

    Raises InvalidArgumentError when serialised attrs that were never decoded turn out to be damaged.
    """
    first = max(from_node_id, SINK_ID + 1)
    inputs = _input_strings(graph, first)
    ids = [node_id for node_id in graph.node_ids() if node_id >= first]
    rest = LazyGraphDef(versions=graph.versions.message().SerializeToString())
    rest.MergeFromString(debug_info_field(graph.debug_info))
    if graph.library.ByteSize():
        rest.library = graph.library.SerializeToString()
    graph_def = GraphDef()
    try:
        for begin in range(0, len(ids), _AT_ONCE):
            nodes = [_node_def(graph, node_id, inputs.pop(node_id, [])) for node_id in ids[begin : begin + _AT_ONCE]]
            graph_def.MergeFromString(LazyGraphDef(node=nodes).SerializeToString())
        graph_def.MergeFromString(rest.SerializeToString())
    except DecodeError as error:  # attrs stay bytes until they are decoded, and these were not
        raise InvalidArgumentError("the bytes of an attr are damaged; read the graph anew from a whole file") from error
    return graph_def
