"""Building the graph of each location from the nodes and edges of a cut.

Nodes are identified by number: those of the whole graph by their ids, generated nodes by the numbers after them. In a
partition nodes come by ascending id, and a generated node right after the consumer that it was generated for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ..arrays import Numbers, distinct, inverse, starts_of
from ..columns import SINK_ID, Ids
from ..edge_ends import EdgeEnds, by_consumer
from ..graph import Graph
from ..library.calls import functions_named_by
from ..ops.properties import Details, NodeProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """All nodes of all partitions, a row each by number.

    `kind_of`: index into `kinds`. `row`: row of `details`, -1 for none. `devices`: index of the assigned device in the
    whole graph. `locations`: index of the location; -1 for source, sink and removed nodes, which are in no partition.
    `keys`: nodes of one partition are sorted by it.
    """

    names: list[str | None]
    kinds: list[NodeProperties]
    kind_of: Numbers
    details: Details
    row: Ids
    devices: Ids
    locations: Ids
    keys: Numbers


def assemble(whole: Graph, locations: list[str], members: Members, edges: EdgeEnds) -> dict[str, Graph]:
    """The graph of every location that has a node; the ends of `edges` are numbers of members."""
    # Nodes sorted by location, then by key, so each partition is one range; location -1, in no partition, comes first.
    order = np.lexsort((members.keys, members.locations))
    removed = np.count_nonzero(members.locations < 0)
    position = inverse(order) - removed
    order = order[removed:]
    starts = starts_of(members.locations[order], len(locations)).tolist()
    edges = EdgeEnds(position[edges.src], edges.src_output, position[edges.dst], edges.dst_input)
    edges = edges.at(by_consumer(edges.dst, edges.dst_input))
    # Sorted by consumer, the edges of a partition are one range too.
    edge_starts = np.searchsorted(edges.dst, starts).tolist()
    parts = {}
    for i, location in enumerate(locations):
        chosen = order[starts[i] : starts[i + 1]]
        if len(chosen):
            first = starts[i] - (SINK_ID + 1)  # ids begin after the source and sink of the partition
            src, src_output, dst, dst_input = edges.at(np.s_[edge_starts[i] : edge_starts[i + 1]])
            parts[location] = _part(whole, members, chosen, EdgeEnds(src - first, src_output, dst - first, dst_input))
    return parts


def _part(
    whole: Graph,
    members: Members,
    chosen: Numbers,
    edges: EdgeEnds,
) -> Graph:
    part = Graph()
    part.versions, part.fed_shapes, part.lowered = whole.versions, whole.fed_shapes, whole.lowered
    if whole.functions:
        kinds = (members.kinds[kind] for kind in distinct(members.kind_of[chosen]).tolist())
        part.functions = whole.functions.reachable(name for kind in kinds for name in functions_named_by(kind))
    # Only the devices of these nodes, mostly one: all names of the whole graph in every part would be quadratic.
    used, device_of = np.unique(members.devices[chosen], return_inverse=True)
    names = whole.device_names()
    interned = np.array([part.intern_device(names[device]) for device in used.tolist()], np.int32)
    numbers = chosen.tolist()
    part.extend_nodes_of_kinds(
        cast("list[str]", list(map(members.names.__getitem__, numbers))),  # what has a location was not removed
        members.kinds,
        members.kind_of[chosen],
        interned[device_of.reshape(-1)].tolist(),
    )
    part.set_details(members.details, np.concatenate([np.full(SINK_ID + 1, -1, np.int32), members.row[chosen]]))
    part.assign_devices(part.requested_device_indices())
    part.extend_edges(*edges)
    part.fix_source_and_sink_edges()
    return part
