"""The parts of a cut graph, and the graphs they become.

Flows in: the whole graph, the location of each node, generated nodes and new edges. Flows out: one graph per
location. Always holds: a node is known by its id in the whole graph, or by a number past them when it was generated;
within a part a generated node comes right after the node whose input made it necessary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from ..columns import CONTROL_SLOT, SINK_ID, Details, Ids
from ..graph import Graph
from ..library.calls import functions_named_by
from ..ops.properties import NodeProperties

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Members:
    """All nodes of all parts by number: names, kind, index of device and location, and the sort key in a part.

    `kind_of` is an index into `kinds`; `row` is the row of `details` that a node has, -1 for none.
    """

    names: list[str | None]
    kinds: list[NodeProperties]
    kind_of: Numbers
    details: Details
    row: Ids
    devices: Ids
    locations: Ids
    keys: Numbers


def _starts(groups: Ids, count: int) -> list[int]:
    """Where each of `count` groups begins in a sorted column of group indices, and where the last ends."""
    return [int(start) for start in np.searchsorted(groups, np.arange(count + 1))]


def assemble(whole: Graph, locations: list[str], members: Members, edges: npt.NDArray[np.int32]) -> dict[str, Graph]:
    """The graph of every location that has a node; rows of `edges` are (src, src_output, dst, dst_input) by number."""
    order = np.lexsort((members.keys, members.locations))
    order = order[members.locations[order] >= 0]
    starts = _starts(members.locations[order], len(locations))
    position = np.zeros(len(members.locations), np.int64)
    position[order] = np.arange(len(order))
    edges = _by_consumer(edges, position)
    edge_starts = _starts(members.locations[edges[:, 2]], len(locations))
    parts = {}
    for i, location in enumerate(locations):
        chosen = order[starts[i] : starts[i + 1]]
        if len(chosen):
            rows = edges[edge_starts[i] : edge_starts[i + 1]]
            first = starts[i] - (SINK_ID + 1)
            columns = position[rows[:, 0]] - first, rows[:, 1], position[rows[:, 2]] - first, rows[:, 3]
            parts[location] = _part(whole, members, chosen, columns)
    return parts


def _by_consumer(edges: npt.NDArray[np.int32], position: Numbers) -> npt.NDArray[np.int32]:
    """Edges by part and consumer: data inputs by port, then control inputs as they came."""
    port = edges[:, 3]
    return edges[np.lexsort((np.where(port == CONTROL_SLOT, 0, port), port == CONTROL_SLOT, position[edges[:, 2]]))]


def _part(
    whole: Graph,
    members: Members,
    chosen: Numbers,
    columns: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
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
    part.extend_edges(*columns)
    part.fix_source_and_sink_edges()
    return part
