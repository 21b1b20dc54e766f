"""The parts of a graph while it is being cut, and the graphs they become.

Flows in: the whole graph, the location of each of its nodes, then generated nodes and new edges. Flows out: one graph per
location. Always holds: a node is known by its id in the whole graph, or by a number past them when it was generated; within
a part a generated node comes right after the node whose input made it necessary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from ..graph import Graph, Ids
from ..node import CONTROL_SLOT, SINK_ID
from ..properties import NodeProperties
from ..protos import AttrValue
from .transfer import TransferProperties

START_TIME = "_start_time"


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

    def transferred_inputs(self, consumer: int, except_for: Collection[int]) -> list[int]:
        """Generated nodes that a consumer reads or waits for, without `except_for`."""
        return [src for src, _, dst, _ in self._edges if dst == consumer and src not in except_for]

    def set_start_time(self, number: int, start_time: int) -> None:
        """Sets the start time of a generated node, in microseconds."""
        index = number - self.first_generated
        old = self.properties[index]
        if isinstance(old, TransferProperties):
            self.properties[index] = old.started_at(start_time)
        else:
            self.properties[index] = old.with_attr(START_TIME, AttrValue(i=start_time))

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
        whole = self.graph
        part = Graph()
        part.versions, part.library = whole.versions, whole.library
        interned = np.array([part.intern_device(name) for name in whole.device_names()], np.int32)
        devices = np.concatenate([whole.assigned_device_indices(), np.array(self._devices, np.int32)])
        names = [*whole.names(), *self._names]
        properties = [*whole.all_properties(), *self.properties]
        for node_id, replacement in self.replaced.items():
            properties[node_id] = replacement
        part.extend_nodes(
            [name for i in members if (name := names[i]) is not None],
            [shared for i in members if (shared := properties[i]) is not None],
            interned[devices[members]].tolist(),
        )
        part.assign_devices(part.requested_device_indices())
        part.extend_edges(*edges)
        part.fix_source_and_sink_edges()
        return part


def _by_consumer(src: Ids, output: Ids, dst: Ids, port: Ids) -> tuple[Ids, Ids, Ids, Ids]:
    """Edges ordered by consumer: data inputs by port, then control inputs as they came."""
    order = np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, dst))
    return src[order], output[order], dst[order], port[order]
