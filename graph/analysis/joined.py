"""The partitions of a graph as one graph again: one numbering of all nodes, and every receive joined to its send.

Nodes are numbered in the order of the places and, within a place, of node ids; source and sink are left out. A single
unpartitioned graph may be given too. Columns by this joint number have name, properties, place, data inputs by port,
control inputs, and the send of every receive.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import InvalidArgumentError
from ..arrays import ready_order
from ..columns import CONTROL_SLOT, SINK_ID
from ..dtypes import Shape
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from .transfers import Transfer, transfer_of

_SENDS = (NodeClass.SEND, NodeClass.HOST_SEND)
_RECVS = (NodeClass.RECV, NodeClass.HOST_RECV)


class JoinedGraph:
    """Columns over all nodes of several graphs.

    `inputs[n]` has one (node, output) per data input, `controls[n]` the control inputs, `sender[n]` the send of receive
    `n`; receives without an entry get their tensor from the client. `functions` and `producers` have, by place, the
    function library and the producer version of the graph; `fed_shapes` is as in `Graph`.
    """

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        """Raises InvalidArgumentError for an unconnected input, and for a receive whose send is not in `graphs`."""
        self.places = list(graphs)
        self.functions = [graph.functions for graph in graphs.values()]
        self.producers = [graph.versions.producer for graph in graphs.values()]
        self.fed_shapes: dict[str, Shape] | None = None
        self.names: list[str] = []
        self.properties: list[NodeProperties] = []
        self.place: list[int] = []
        self.devices: list[str] = []
        self.node_ids: list[int] = []
        self.inputs: list[list[tuple[int, int]]] = []
        self.controls: list[list[int]] = []
        for number, graph in enumerate(graphs.values()):
            self._add(graph, number)
            if graph.fed_shapes is not None:
                self.fed_shapes = {**(self.fed_shapes or {}), **graph.fed_shapes}
        self.ops = [properties.op for properties in self.properties]
        self.classes = [kind.op_def.record.node_class for kind in self.properties]
        self.transfers: dict[int, Transfer] = {
            n: transfer_of(self.properties[n]) for n, c in enumerate(self.classes) if c in _SENDS or c in _RECVS
        }
        self.sender = self._match()
        self._next_iterations = {n for n, c in enumerate(self.classes) if c is NodeClass.NEXT_ITERATION}
        self._order: list[int] = []

    def __len__(self) -> int:
        return len(self.names)

    def _add(self, graph: Graph, number: int) -> None:
        ids = [i for i in graph.node_ids() if i > SINK_ID]
        first = len(self.names)
        joint = np.full(graph.num_node_ids, -1, np.int64)
        joint[ids] = np.arange(first, first + len(ids))
        names, properties, assigned = graph.names(), graph.all_properties(), graph.assigned_device_indices()
        requested, device_names = graph.requested_device_indices(), graph.device_names()
        for i in ids:
            name, shared = names[i], properties[i]
            if name is None or shared is None:
                continue  # never happens: only for the type checker
            self.names.append(name)
            self.properties.append(shared)
            self.place.append(number)
            self.devices.append(device_names[assigned[i]] or device_names[requested[i]])
        self.node_ids += ids
        self._add_edges(graph, joint, first)

    def _add_edges(self, graph: Graph, joint: np.typing.NDArray[np.int64], first: int) -> None:
        inputs: list[list[tuple[int, int]]] = [[] for _ in range(first, len(self.names))]
        controls: list[list[int]] = [[] for _ in inputs]
        edges = graph.edge_arrays()
        order = np.lexsort((edges.dst_input, edges.dst))
        columns = (joint[edges.src[order]], edges.src_output[order], joint[edges.dst[order]])
        for src, output, dst in zip(*(column.tolist() for column in columns), strict=True):
            if src < 0 or dst < 0:
                continue  # an edge of source or sink
            if output == CONTROL_SLOT:
                controls[dst - first].append(src)
            else:
                inputs[dst - first].append((src, output))
        for n, sources in enumerate(inputs, first):
            wanted = len(self.properties[n].input_types)
            if len(sources) != wanted:
                raise InvalidArgumentError(
                    f"{len(sources)} of {wanted} inputs are connected; complete the graph first",
                    node=self.names[n],
                    op=self.properties[n].op,
                )
        self.inputs += inputs
        self.controls += controls

    def _match(self) -> dict[int, int]:
        """Receives by joint number -> their sends, matched by tensor name and devices as at the rendezvous."""
        sends = {transfer.key: n for n, transfer in self.transfers.items() if self.classes[n] in _SENDS}
        sender = {}
        for n, transfer in self.transfers.items():
            if self.classes[n] not in _RECVS or transfer.client_terminated:
                continue
            if transfer.key not in sends:
                raise InvalidArgumentError(
                    f"nothing sends {transfer.key}; pass all partitions of the graph together",
                    node=self.names[n],
                    op=self.ops[n],
                )
            sender[n] = sends[transfer.key]
        return sender

    def is_back_edge(self, src: int, dst: int) -> bool:
        """Whether the edge closes a loop: from a NextIteration to a Merge."""
        return src in self._next_iterations and self.classes[dst] is NodeClass.MERGE

    def consumers(self) -> list[list[int]]:
        """By node its consumers, once per edge: data, control, send to receive; without edges that close a loop."""
        after: list[list[int]] = [[] for _ in self.names]
        for n, inputs in enumerate(self.inputs):
            for src, _ in inputs:
                if not self.is_back_edge(src, n):
                    after[src].append(n)
            for src in self.controls[n]:
                if not self.is_back_edge(src, n):
                    after[src].append(n)
        for recv, send in self.sender.items():
            after[send].append(recv)
        return after

    def order(self) -> list[int]:
        """A topological order (first ready, first out; lowest numbers first at the start); not to be changed.

        Raises InvalidArgumentError naming a node of a cycle that has no NextIteration.
        """
        if len(self._order) < len(self):
            self._order = self._sorted()
        return self._order

    def _sorted(self) -> list[int]:
        after = self.consumers()
        waits = [0] * len(after)
        for targets in after:
            for n in targets:
                waits[n] += 1
        order = ready_order(after, waits)
        if len(order) < len(after):
            stuck = min(set(range(len(after))).difference(order))
            raise InvalidArgumentError(
                "the node waits for itself: its inputs form a cycle without a next iteration; break the cycle",
                node=self.names[stuck],
                op=self.ops[stuck],
            )
        return order
