"""The parts of a cut graph, and the graphs they become.

Flows in: the whole graph, the location of each node, generated nodes and new edges. Flows out: one graph per
location. Always holds: a node is known by its id in the whole graph, or by a number past them when it was generated;
within a part a generated node comes right after the node whose input made it necessary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from ..arrays import Numbers, inverse, starts_of
from ..columns import SINK_ID, Details, Ids
from ..edge_ends import EdgeEnds, by_consumer
from ..graph import Graph
from ..library.calls import functions_named_by
from ..ops.properties import NodeProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """All nodes of all parts by number: names, kind, index of device and location, and the sort key in a part.

    `kind_of` is an index into `kinds`; `row` is the row of `details` that a node has, -1 for none; `locations` is -1
    for source, sink and removed nodes, which are in no part.
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
    order = np.lexsort((members.keys, members.locations))  # all parts one after the other, as they will be
    removed = np.count_nonzero(members.locations < 0)
    position = inverse(order) - removed
    order = order[removed:]
    starts = starts_of(members.locations[order], len(locations)).tolist()
    edges = EdgeEnds(position[edges.src], edges.src_output, position[edges.dst], edges.dst_input)
    edges = edges.at(by_consumer(edges.dst, edges.dst_input))
    # Sorted by consumer, the edges of a part follow each other as its nodes do.
    edge_starts = np.searchsorted(edges.dst, starts).tolist()
    parts = {}
    for i, location in enumerate(locations):
        chosen = order[starts[i] : starts[i + 1]]
        if len(chosen):
            first = starts[i] - (SINK_ID + 1)  # of this part, whose nodes come after its source and sink
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
    part.versions, part.fed_shapes = whole.versions, whole.fed_shapes
    if whole.functions:
        kinds = (members.kinds[kind] for kind in np.unique(members.kind_of[chosen]).tolist())
        part.functions = whole.functions.reachable(name for kind in kinds for name in functions_named_by(kind))
    interned = np.array([part.intern_device(name) for name in whole.device_names()], np.int32)
    numbers = chosen.tolist()
    part.extend_nodes_of_kinds(
        cast("list[str]", list(map(members.names.__getitem__, numbers))),  # what has a location was not removed
        members.kinds,
        members.kind_of[chosen],
        interned[members.devices[chosen]].tolist(),
    )
    part.set_details(members.details, np.concatenate([np.full(SINK_ID + 1, -1, np.int32), members.row[chosen]]))
    part.assign_devices(part.requested_device_indices())
    part.extend_edges(*edges)
    part.fix_source_and_sink_edges()
    return part
