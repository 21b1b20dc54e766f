"""Who waits for whom in a body: how many events each node waits for, and which nodes count down when it ends.

On a device that launches kernels, a kernel waits only for the launch of another kernel of the same device whose tensor
stays in device memory; everything else waits for its end:

    a (kernel) -> b (kernel)      b waits for the launch of a      in `launch_consumers` of a
    a (kernel) -> _Send           the send waits for the end       in `consumers` of a
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ....graph.arrays import grouped, owners
from ....graph.ops.record import NodeClass
from .body import Consumers

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Numbers
    from .places import HostMemory


def dependencies(
    graph: JoinedGraph, device: Numbers, on_stream: Flags, memory: HostMemory, into_merges: Mapping[int, list[int]]
) -> tuple[list[int], Consumers, Consumers | None]:
    """The columns `waits`, `consumers` and `launch_consumers` of a `Body`; edges that close a loop do not count.

    Live Merges count one event for all their data inputs, which `into_merges` deliver.
    """
    data_dst, control_dst = owners(np.diff(graph.input_start)), owners(np.diff(graph.control_start))
    receives = np.flatnonzero(graph.sender >= 0)
    src = np.concatenate([graph.input_src, graph.control_src, graph.sender[receives]]).astype(np.int64)
    dst = np.concatenate([data_dst, control_dst, receives])
    is_data = np.arange(len(src)) < len(data_dst)
    merges = np.zeros(len(graph), np.bool_)
    merges[[merge for merges_of in into_merges.values() for merge in merges_of]] = True
    counts = ~graph.closes_loop(src, dst) & ~(is_data & merges[dst])
    waits = np.bincount(dst[counts], minlength=len(graph)) + merges
    on_launch = on_stream[src] & on_stream[dst] & (device[src] == device[dst])
    on_launch[is_data] &= ~memory.has_output(graph.input_src, graph.input_output)
    if not on_stream.any():
        return waits.tolist(), _consumers(src[counts], dst[counts], len(graph)), None
    at_end, at_launch = counts & ~on_launch, counts & on_launch
    return (
        waits.tolist(),
        _consumers(src[at_end], dst[at_end], len(graph)),
        _consumers(src[at_launch], dst[at_launch], len(graph)),
    )


def _consumers(src: Numbers, dst: Numbers, count: int) -> Consumers:
    starts, edges = grouped(src, count)
    return Consumers(starts.tolist(), dst[edges].tolist())


def live_merges(graph: JoinedGraph, dead: set[tuple[int, int]]) -> dict[int, list[int]]:
    """By node the live Merges that one of its live outputs goes into; `dead` are the dead outputs, -1 for a node."""
    into: dict[int, list[int]] = {}
    for merge in np.flatnonzero(graph.of_class(NodeClass.MERGE)).tolist():
        if (merge, -1) not in dead:
            for source in graph.inputs_of(merge):
                if source not in dead and not graph.is_back_edge(source[0], merge):
                    into.setdefault(source[0], []).append(merge)
    return into
