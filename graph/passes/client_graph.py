"""The graph of one request: feeds and fetches inserted, and every node removed that no fetch or target depends on.

`rewrite_graph_for_execution` changes a graph, `build_client_graph` makes a new one with dense ids, which is what gets
partitioned. Every kept node has edges from the source side and to the sink side.

There are two conventions for feeds and fetches: `_Arg`/`_Retval` nodes use a call frame, by position; `_Recv`/`_Send`
nodes exchange tensors with the client at the rendezvous, by name. A `Wiring` also connects tensors to others, and puts
feeds and fetches of a call frame on other devices than the client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...errors import InvalidArgumentError, NotFoundError
from ..analysis.fed_nodes import feed_node_name
from ..arrays import grouped
from ..checking import are_checked
from ..columns import CONTROL_SLOT, SINK_ID, SOURCE_ID, Ids
from ..dtypes import DataType, base_type
from ..graph import Graph
from ..graphdef.importer import graph_def_to_graph
from ..graphdef.sources import GraphSource, check_graph
from ..node import Node
from ..ops.properties import NodeProperties, properties_of
from ..suggestions import meant
from ..tensor_id import TensorId, parse_tensor_name
from .client_request import ClientRequest
from .wiring import add_connection, check_connections, connection_sources


@dataclass(frozen=True, slots=True)
class RewriteMetadata:
    """Element types of the feeds and fetches of a rewritten graph, in the order asked."""

    feed_types: tuple[DataType, ...]
    fetch_types: tuple[DataType, ...]


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One feed or fetch: its text, its position in the request, and the tensor that it names."""

    text: str
    position: int
    node: Node
    output: int

    @property
    def dtype(self) -> DataType:
        return base_type(self.node.output_types[self.output])


@lru_cache(256)  # these differ in type and position only, so that most requests share them
def _end_properties(op: str, dtype: DataType, position: int) -> NodeProperties:
    """The properties of an `_Arg` or `_Retval`."""
    return properties_of(op, {"T": dtype, "index": position})


class _Rewrite:
    """One rewrite in progress on a graph."""

    def __init__(self, graph: Graph, request: ClientRequest) -> None:
        self.graph = graph
        self._request = request
        self._device = request.device

    def _feed_node(self, end: _Endpoint) -> Node:
        if not self._request.by_rendezvous:
            name = feed_node_name(TensorId(end.node.name, end.output), end.position)
            device = self._request.wiring.feed_device(end.position, self._device)
            return self._add(name, _end_properties("_Arg", end.dtype, end.position), device)
        return self._add(
            f"_recv_{end.node.name}_{end.output}",
            properties_of("_Recv", self._transfer_attrs(end) | {"tensor_type": end.dtype}),
            self._device,
        )

    def _fetch_node(self, end: _Endpoint) -> Node:
        where = f"{end.node.name}_{end.output}"
        if not self._request.by_rendezvous:
            properties = _end_properties("_Retval", end.dtype, end.position)
            device = self._request.wiring.fetch_device(end.position, self._device)
            return self._add(f"_retval_{where}_{end.position}", properties, device)
        properties = properties_of("_Send", self._transfer_attrs(end) | {"T": end.dtype})
        return self._add(f"_send_{where}", properties, self._device)

    def _transfer_attrs(self, end: _Endpoint) -> dict[str, object]:
        return {
            "tensor_name": end.text,
            "send_device": self._device,
            "recv_device": self._device,
            "send_device_incarnation": self._request.incarnation,
            "client_terminated": True,
        }

    def _add(self, name: str, properties: NodeProperties, device: str) -> Node:
        node = self.graph.add_node_with(name, properties)
        node.assigned_device = device
        return node

    def feed(self, text: str, position: int) -> DataType:
        """Redirects all consumers of a fed tensor to a new feed node."""
        end = self._fed_end(text, position)
        fed = self._feed_node(end)
        self.graph.add_edge(self.graph.source, CONTROL_SLOT, fed, CONTROL_SLOT)
        self._redirect(end, fed)
        return end.dtype

    def connect(self, source: tuple[Node, int], text: str) -> None:
        """Redirects all consumers of a tensor to an Identity that reads `source`, which must not depend on it."""
        end = self._fed_end(text, 0)
        if reachable_backwards(self.graph, [source[0].id])[end.node.id]:
            raise InvalidArgumentError(
                f'Requested Tensor connection between nodes "{end.node.name}" and "{source[0].name}" would create a '
                "cycle."
            )
        self._redirect(end, add_connection(self.graph, source, end.node, end.output))

    def _fed_end(self, text: str, position: int) -> _Endpoint:
        tensor = parse_tensor_name(text)
        node = self.graph.find_node(tensor.node)
        if node is None:
            raise NotFoundError(
                f"FeedInputs: unable to find feed output {text}{_meant(self.graph, tensor.node)}", node=tensor.node
            )
        if not 0 <= tensor.index < node.num_outputs:
            raise InvalidArgumentError(
                f"FeedInputs: {text} should have output index < {node.num_outputs}", node=node.name, op=node.op
            )
        return _Endpoint(text, position, node, tensor.index)

    def _redirect(self, end: _Endpoint, fed: Node) -> None:
        node = end.node
        moves_control = node.properties.op_def.record.must_be_fed
        for edge in node.out_edges():
            if edge.src_output == end.output:
                self.graph.add_edge(fed, 0, edge.dst, edge.dst_input)
                self.graph.remove_edge(edge)
            elif edge.is_control and moves_control:
                self.graph.add_edge(fed, CONTROL_SLOT, edge.dst, CONTROL_SLOT)
                self.graph.remove_edge(edge)

    def fetch(self, text: str, position: int) -> tuple[Node, DataType]:
        """Adds a fetch node for a tensor."""
        tensor = parse_tensor_name(text)
        node = self.graph.find_node(tensor.node)
        if node is None:
            raise NotFoundError(
                f"FetchOutputs node {text}: not found{_meant(self.graph, tensor.node)}", node=tensor.node
            )
        if node.num_outputs == 0:
            raise InvalidArgumentError(
                f"Tried to fetch data for '{text}', which produces no output.  To run to a node but not fetch any "
                f"data, pass '{text}' as an argument to the 'target_node_names' argument of the Session::Run API.",
                node=node.name,
                op=node.op,
            )
        if not 0 <= tensor.index < node.num_outputs:
            raise InvalidArgumentError(
                f"FetchOutputs {text}: output index too large, must be < {node.num_outputs}", node=node.name, op=node.op
            )
        end = _Endpoint(text, position, node, tensor.index)
        fetched = self._fetch_node(end)
        self.graph.add_edge(node, tensor.index, fetched, 0)
        self.graph.add_edge(fetched, CONTROL_SLOT, self.graph.sink, CONTROL_SLOT)
        return fetched, end.dtype


def reachable_backwards(graph: Graph, seeds: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Which node ids reach one of `seeds` over data or control edges; seeds, source and sink included."""
    edges = graph.edge_arrays()
    kept = (edges.dst != SINK_ID) & (edges.src != SOURCE_ID)
    dst, src = edges.dst[kept], edges.src[kept]
    seen = bytearray(graph.num_node_ids)
    reached = np.frombuffer(seen, np.bool_)  # the same bytes
    for seed in (SOURCE_ID, SINK_ID, *seeds):
        seen[seed] = 1
    if not reached[dst].any():
        return reached.copy()
    # Nearly all edges lead to higher ids, so this pass, which needs no index of edges, reaches nearly all nodes.
    down = np.argsort(dst, kind="stable")[::-1]
    for source, consumer in zip(src[down].tolist(), dst[down].tolist(), strict=True):
        if seen[consumer]:
            seen[source] = 1
    left = reached[dst] & ~reached[src]
    if left.any():
        _spread(src[left].tolist(), seen, dst, src)
    return reached.copy()


def _spread(nodes: list[int], seen: bytearray, dst: Ids, src: Ids) -> None:
    """Marks `nodes` in `seen`, and all nodes that reach one of them over the edges from `src` to `dst`."""
    edges_into = grouped(dst, len(seen))
    starts, sources = edges_into.starts.tolist(), src[edges_into.members].tolist()
    while nodes:
        node = nodes.pop()
        seen[node] = 1
        nodes += [source for source in sources[starts[node] : starts[node + 1]] if not seen[source]]


def prune_for_reverse_reachability(graph: Graph, seeds: Iterable[Node]) -> bool:
    """Removes every node that reaches no seed; returns whether any was removed. Source and sink stay."""
    return graph.keep_only(reachable_backwards(graph, [seed.id for seed in seeds]))


def _meant(graph: Graph, name: str) -> str:
    """The suggestion for an unknown node name; nodes that requests add are not suggested."""
    return meant(name, (known for known in graph.names() if known and not known.startswith("_")))


def _target_nodes(graph: Graph, targets: Sequence[str]) -> list[Node]:
    nodes = [graph.find_node(parse_tensor_name(text).node) for text in targets]
    missing = [text for text, node in zip(targets, nodes, strict=True) if node is None]
    if missing:
        hint = _meant(graph, parse_tensor_name(missing[0]).node)
        raise NotFoundError(f"PruneForTargets: Some target nodes not found: {' '.join(missing)} {hint}")
    return [node for node in nodes if node is not None]


def rewrite_graph_for_execution(graph: Graph, request: ClientRequest) -> RewriteMetadata:
    """Rewrites `graph` in place for one request: feed nodes, fetch nodes, pruning, source and sink edges.

    Duplicates are detected by spelling: "x" and "x:0" may both be used. `_Send` nodes are named after their tensor, and
    as in TensorFlow the last one of a name is kept: a tensor that is fetched twice is sent once, under the last
    spelling.

    Raises InvalidArgumentError (empty request, fed twice, fed and fetched, no such port, a connection from an unknown
    tensor or that closes a cycle) or NotFoundError (no such node). After an error the graph is partly rewritten:
    rewrite a copy.
    """
    connections = request.wiring.connections
    sources = connection_sources(graph, connections)
    request.check()
    rewrite = _Rewrite(graph, request)
    feed_types = [rewrite.feed(text, k) for k, text in enumerate(request.feeds)]
    for source, (_, target) in zip(sources, connections, strict=True):
        rewrite.connect(source, target)
    fetched = [rewrite.fetch(text, k) for k, text in enumerate(request.fetches)]
    last_of_name = {node.name: node for node, _ in fetched}  # a tensor fetched twice by rendezvous is sent once
    prune_for_reverse_reachability(graph, [*last_of_name.values(), *_target_nodes(graph, request.targets)])
    graph.fix_source_and_sink_edges()
    return RewriteMetadata(tuple(feed_types), tuple(dtype for _, dtype in fetched))


def client_graph(full: Graph, request: ClientRequest) -> Graph:
    """The graph of one request: copies the placed graph `full`, rewrites the copy and copies it again for dense ids.

    Raises what `rewrite_graph_for_execution` raises.
    """
    graph, _ = typed_client_graph(full, request)
    return graph


def typed_client_graph(full: Graph, request: ClientRequest) -> tuple[Graph, RewriteMetadata]:
    """`client_graph`, and the element types of feeds and fetches.

    Raises InvalidArgumentError also for connected tensors of different types.
    """
    check_graph(full)
    graph = full.copy()
    types = rewrite_graph_for_execution(graph, request)
    graph = graph.copy()
    check_connections(graph, request.wiring)
    if are_checked():
        from .pruned_invariants import check_pruned

        check_pruned(graph, full, request)
    return graph, types


def build_client_graph(graph_def: GraphSource, request: ClientRequest) -> Graph:
    """What a session partitions for one request: import, copy, rewrite, copy, with the edge ids that names come from.

    Devices that the GraphDef requests become assigned ones. Raises what `graph_def_to_graph` and
    `rewrite_graph_for_execution` raise.
    """
    full = graph_def_to_graph(graph_def, add_default_attrs=True)
    full.assign_devices(full.requested_device_indices())
    return client_graph(full, request)
