"""The parts of a graph while it is being cut, and the graphs they become.

Flows in: the whole graph, the location of each of its nodes, then generated nodes and new edges. Flows out: one graph per
location. Always holds: a node is known by its id in the whole graph, or by a number past them when it was generated; within
a part a generated node comes right after the node whose input made it necessary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..graph import Graph, Ids
from ..node import CONTROL_SLOT, SINK_ID
from ..properties import NodeProperties


class Parts:
    """Original and generated nodes with the edges between those of one part."""

    def __init__(self, graph: Graph, locations: list[str], location_of: Ids) -> None:
        """`location_of` gives the index into `locations` per node id, -1 for source, sink and removed nodes."""
        self.graph = graph
        self.locations = locations
        self.first_generated = graph.num_node_ids
        self._location_of = location_of
        self._names: list[str] = []
        self.properties: list[NodeProperties] = []
        self._locations: list[int] = []
        self._devices: list[int] = []
        self._consumers: list[int] = []
        self._edges: list[tuple[int, int, int, int]] = []
        self.replaced: dict[int, NodeProperties] = {}

    def add_node(self, name: str, properties: NodeProperties, location: int, device: int, consumer: int) -> int:
        """Adds a generated node and returns its number; `device` is an index of the whole graph's interned names."""
        self._names.append(name)
        self.properties.append(properties)
        self._locations.append(location)
        self._devices.append(device)
        self._consumers.append(consumer)
        return self.first_generated + len(self._names) - 1

    def add_edge(self, src: int, src_output: int, dst: int, dst_input: int) -> None:
        """Adds an edge between two nodes of one part, by their numbers."""
        self._edges.append((src, src_output, dst, dst_input))

    def name(self, number: int) -> str:
        """Name of a node by its number."""
        if number < self.first_generated:
            return self.graph.node_name(number)
        return self._names[number - self.first_generated]

    def graphs(self, kept_edges: npt.NDArray[np.int64]) -> dict[str, Graph]:
        """The graph of every location that has a node; `kept_edges` are positions in `edge_arrays()` of uncut edges."""
        where = np.concatenate([self._location_of, np.array(self._locations, np.int32)])
        order = np.argsort(self._sort_keys(), kind="stable")
        order = order[where[order] >= 0]
        src, output, dst, port = self._all_edges(kept_edges)
        made = {}
        for index, location in enumerate(self.locations):
            members = order[where[order] == index]
            if len(members):
                new_id = np.full(len(where), -1, np.int32)
                new_id[members] = np.arange(SINK_ID + 1, SINK_ID + 1 + len(members))
                chosen = where[dst] == index
                columns = new_id[src[chosen]], output[chosen], new_id[dst[chosen]], port[chosen]
                made[location] = self._graph(members.tolist(), _by_consumer(*columns))
        return made

    def _sort_keys(self) -> npt.NDArray[np.int64]:
        """Twice the node id for originals; one more than that of its consumer for a generated node."""
        original = np.arange(self.first_generated, dtype=np.int64) * 2
        return np.concatenate([original, np.array(self._consumers, np.int64) * 2 + 1])

    def _all_edges(self, kept: npt.NDArray[np.int64]) -> tuple[Ids, Ids, Ids, Ids]:
        edges = self.graph.edge_arrays()
        new = np.array(self._edges, np.int32).reshape(-1, 4)
        columns = (edges.src, edges.src_output, edges.dst, edges.dst_input)
        src, output, dst, port = (np.concatenate([c[kept], new[:, i]]) for i, c in enumerate(columns))
        return src, output, dst, port

    def _graph(self, members: Sequence[int], edges: tuple[Ids, Ids, Ids, Ids]) -> Graph:
        whole, first = self.graph, self.first_generated
        part = Graph()
        part.versions, part.library = whole.versions, whole.library
        names, properties, devices = whole.names(), whole.all_properties(), whole.assigned_device_indices().tolist()
        interned = [part.intern_device(name) for name in whole.device_names()]
        part_names, part_properties, requested = [], [], []
        for i in members:
            if i < first:
                shared, name = self.replaced.get(i) or properties[i], names[i]
                device = devices[i]
            else:
                shared, name, device = self.properties[i - first], self._names[i - first], self._devices[i - first]
            part_names.append(str(name))
            part_properties.append(shared or part.node_properties(0))
            requested.append(interned[device])
        part.extend_nodes(part_names, part_properties, requested)
        part.assign_devices(part.requested_device_indices())
        part.extend_edges(*edges)
        part.fix_source_and_sink_edges()
        return part


def _by_consumer(src: Ids, output: Ids, dst: Ids, port: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Edges ordered by consumer: data inputs by port, then control inputs as they came."""
    order = np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, dst))
    return src[order], output[order], dst[order], port[order]
