"""Edges between workers whose tensor cannot leave its process: refused before the step runs, by name.

    RangeDataset on CPU:0 (worker a) -> MapDataset on CPU:1 (worker b)      UnimplementedError
    both on worker a                                                        goes on

What comes out of a node that passes its input on is known only when it is sent; then the step fails with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .....devices.wire import refused_kind
from .....errors import UnimplementedError

if TYPE_CHECKING:
    from .....devices.pipeline import Pruned
    from .....graph.graph import Graph
    from .layouts import DeviceHomes


def check_edges(pruned: Pruned, homes: DeviceHomes) -> None:
    """UnimplementedError for an edge that would have to take an object of a process elsewhere."""
    graph, process_of = pruned.graph, homes.process_of
    suspects = _suspects(graph)
    if not len(suspects):
        return
    edges = graph.edge_arrays()
    for number in np.flatnonzero(np.isin(edges.src, suspects) & (edges.src_output >= 0)).tolist():
        src, dst = graph.node(int(edges.src[number])), graph.node(int(edges.dst[number]))
        output = int(edges.src_output[number])
        kind = refused_kind(src.properties, output)
        to_session = dst.op_def.record.is_transfer
        if kind is None or not (to_session or process_of[src.assigned_device] != process_of[dst.assigned_device]):
            continue
        where = "the session" if to_session else f"{dst.assigned_device} in another worker process"
        hint = (
            "fetch what is computed from it"
            if to_session
            else f'put both devices on one worker: spread={{"{src.assigned_device}": 0, "{dst.assigned_device}": 0}}'
        )
        raise UnimplementedError(
            f"{src.name}:{output} -> {dst.name}: {kind} cannot go from {src.assigned_device} to {where}; {hint}",
            node=dst.name,
            op=dst.op,
            device=dst.assigned_device,
        )


def _suspects(graph: Graph) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The nodes with an output that cannot travel."""
    kinds, column = graph.distinct_properties()
    refused = [
        any(refused_kind(kind, output) is not None for output in range(len(kind.output_types))) for kind in kinds
    ]
    return np.flatnonzero(np.array([*refused, False])[column])
