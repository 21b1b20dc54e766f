"""The rules of the pruned stage: the graph of one request.

Every used feed is an `_Arg` or a `_Recv` at the client with the number or name of that feed. Only a fetch, or a
connection to another tensor, may read a fed tensor from the node that computes it. Every fetch is a `_Retval` or a
`_Send` of its tensor; every target exists; a node without consumers is a fetch or a target. Ids are dense.
"""

from __future__ import annotations

import numpy as np

from ..columns import CONTROL_SLOT, SINK_ID
from ..dtypes import base_type
from ..graph import Graph
from ..invariants import Stage, check_loose_ends, check_structure
from ..node import Node
from ..ops.record import NodeClass
from ..tensor_id import TensorId, parse_tensor_name
from .client_request import ClientRequest
from .wiring import connection_node_name


def check_pruned(graph: Graph, original: Graph, request: ClientRequest) -> None:
    """Raises InternalError for the first broken rule of the pruned stage. `original` is the graph before pruning."""
    feeds, device, wiring, by_position = request.feeds, request.device, request.wiring, not request.by_rendezvous
    stage = Stage("pruned", graph)
    feed_nodes = {node.id: k for k, text in enumerate(feeds) if (node := _feed_node(graph, text, k, by_position))}
    check_structure(stage, original=original, is_fed=lambda node: node in feed_nodes)
    check_loose_ends(stage)
    if graph.num_nodes < graph.num_node_ids:
        raise stage.broken("ids have no holes", f"{graph!r} has {graph.num_node_ids} ids")
    for number, position in feed_nodes.items():
        _check_feed(
            stage, graph.node(number), original, feeds[position], position, wiring.feed_device(position, device)
        )
    ends = {
        _check_fetch(stage, original, text, k, wiring.fetch_device(k, device), by_position)
        for k, text in enumerate(request.fetches)
    }
    replaced = [parse_tensor_name(target) for _, target in wiring.connections]
    identities = [graph.find_id(connection_node_name(tensor)) for tensor in replaced]
    readers = ends | {node for node in identities if node is not None}
    for tensor in (*map(parse_tensor_name, feeds), *replaced):
        _check_nothing_reads(stage, tensor, readers)
    for text in request.targets:
        target = graph.find_node(parse_tensor_name(text).node)
        if target is None:
            raise stage.broken("every target is there", f"{text!r} is not")
        ends.add(target.id)
    is_read = np.zeros(len(stage.live), np.bool_)
    is_read[stage.edges.src[stage.edges.dst > SINK_ID]] = True
    is_read[[0, SINK_ID, *ends]] = True
    stage.no_node("every node leads to a fetch or a target", ~is_read, lambda _node: "is read by nothing")


def _feed_node(graph: Graph, text: str, position: int, by_position: bool) -> Node | None:
    tensor = parse_tensor_name(text)
    where = f"{tensor.node}_{tensor.index}"
    return graph.find_node(f"_arg_{where}_{position}" if by_position else f"_recv_{where}")


def _check_feed(stage: Stage, node: Node, original: Graph, text: str, position: int, device: str) -> None:
    tensor = parse_tensor_name(text)
    fed = original.find_node(tensor.node)
    rule = "a feed is an _Arg or a _Recv of the tensor's type at the client"
    if (
        fed is None
        or node.op_def.record.node_class not in (NodeClass.ARG, NodeClass.RECV)
        or node.assigned_device != device
    ):
        raise stage.broken(rule, f"{text!r} comes from {node!r} on {node.assigned_device!r}", node.id)
    if node.output_types != (base_type(fed.output_types[tensor.index]),):
        raise stage.broken(rule, f"{text!r} is {fed.output_types[tensor.index]}, not {node.output_types}", node.id)
    is_arg = node.op_def.record.node_class is NodeClass.ARG
    said: object = node.attr("index") if is_arg else node.attr("tensor_name").decode()
    if said != (position if is_arg else text):
        raise stage.broken("a feed says which it is", f"{text!r}, feed {position}, says {said!r}", node.id)


def _check_fetch(stage: Stage, original: Graph, text: str, position: int, device: str, by_position: bool) -> int:
    """The id of the node of a fetch; the same for two fetches of a tensor that is sent once."""
    tensor = parse_tensor_name(text)
    where = f"{tensor.node}_{tensor.index}"
    node = stage.graph.find_node(f"_retval_{where}_{position}" if by_position else f"_send_{where}")
    rule = "a fetch is a _Retval or a _Send of its tensor at the client"
    if (
        node is None
        or node.op_def.record.node_class is not (NodeClass.RETVAL if by_position else NodeClass.SEND)
        or node.assigned_device != device
    ):
        raise stage.broken(rule, f"{text!r} goes to {node!r}", None if node is None else node.id)
    source = node.input_edge(0)
    if (source.src.name, source.src_output) != (tensor.node, tensor.index):
        raise stage.broken(rule, f"{text!r} reads {source!r}", node.id)
    if by_position and node.attr("index") != position:
        raise stage.broken("a fetch says which it is", f"{text!r}, fetch {position}, does not", node.id)
    return node.id


def _check_nothing_reads(stage: Stage, tensor: TensorId, readers: set[int]) -> None:
    """Only `readers` may read the computed value of a fed tensor; fetches only under another spelling of its name."""
    node = stage.graph.find_id(tensor.node)
    if node is None:
        return
    edges = stage.edges
    reads = (edges.src == node) & (edges.src_output == tensor.index) & ~np.isin(edges.dst, list(readers))
    stage.no_edge("what is fed is not computed", reads & (edges.src_output != CONTROL_SLOT), lambda _at: "is left")
