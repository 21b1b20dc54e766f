"""Who waits for whom in a body: how many events each node waits for, and which nodes count down when it ends.

On a device that launches kernels, a kernel waits only for the launch of another kernel of the same device whose tensor
stays in device memory; everything else waits for its end:

    a (kernel) -> b (kernel)      b waits for the launch of a      in `launch_consumers` of a
    a (kernel) -> _Send           the send waits for the end       in `consumers` of a
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.arrays import Flags, Numbers, grouped, owners
from ....graph.ops.record import NodeClass
from .body import Consumers

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from .places import HostMemory

TRANSFER = -2
"""the port by which a receive gets what was sent"""


class Edges(NamedTuple):
    """All edges of a graph, in columns: those by data with the `output` they leave and the `port` they enter.

    Control edges have -1 there; the way from a send to its receive the port TRANSFER. `at_launch` says that the
    consumer waits only for a launch.
    """

    src: Numbers
    output: Numbers
    dst: Numbers
    port: Numbers
    at_launch: Flags

    def at(self, chosen: Flags | Numbers) -> Edges:
        """Those chosen."""
        src, output, dst, port, at_launch = self
        return Edges(src[chosen], output[chosen], dst[chosen], port[chosen], at_launch[chosen])


def edges_of(graph: JoinedGraph, device: Numbers, on_stream: Flags, memory: HostMemory) -> Edges:
    """The edges: data, control, sends to receives."""
    data_dst, control_dst = owners(np.diff(graph.input_start)), owners(np.diff(graph.control_start))
    receives = np.flatnonzero(graph.sender >= 0)
    src = np.concatenate([graph.input_src, graph.control_src, graph.sender[receives]]).astype(np.int64)
    dst = np.concatenate([data_dst, control_dst, receives])
    at_launch = on_stream[src] & on_stream[dst] & (device[src] == device[dst])
    at_launch[: len(data_dst)] &= ~memory.has_output(graph.input_src, graph.input_output)
    output, port = np.full(len(src), -1, np.int64), np.full(len(src), -1, np.int64)
    output[: len(data_dst)] = graph.input_output
    port[: len(data_dst)] = np.arange(len(data_dst)) - graph.input_start[data_dst]
    port[len(src) - len(receives) :] = TRANSFER
    return Edges(src, output, dst, port, at_launch)


def dependencies(
    graph: JoinedGraph, edges: Edges, on_stream: Flags, into_merges: Mapping[int, list[int]]
) -> tuple[list[int], Consumers, Consumers | None]:
    """The columns `waits`, `consumers` and `launch_consumers` of a `Body`; edges that close a loop do not count.

    Merges count one event for all their data inputs, which `into_merges` deliver.
    """
    merges = np.zeros(len(graph), np.bool_)
    merges[[merge for merges_of in into_merges.values() for merge in merges_of]] = True
    counts = ~graph.closes_loop(edges.src, edges.dst) & ~((edges.output >= 0) & merges[edges.dst])
    src, _, dst, _, at_launch = edges
    waits = np.bincount(dst[counts], minlength=len(graph)) + merges
    if not on_stream.any():
        return waits.tolist(), consumers_of(src[counts], dst[counts], len(graph)), None
    at_end, at_launch = counts & ~at_launch, counts & at_launch
    return (
        waits.tolist(),
        consumers_of(src[at_end], dst[at_end], len(graph)),
        consumers_of(src[at_launch], dst[at_launch], len(graph)),
    )


def consumers_of(src: Numbers, dst: Numbers, count: int) -> Consumers:
    """The consumers of `count` nodes, from the ends of edges."""
    starts, edges = grouped(src, count)
    return Consumers(starts.tolist(), dst[edges].tolist())


def merges_after(graph: JoinedGraph) -> dict[int, list[int]]:
    """By node the Merges that one of its outputs goes into."""
    into: dict[int, list[int]] = {}
    for merge in np.flatnonzero(graph.of_class(NodeClass.MERGE)).tolist():
        for src, _ in graph.inputs_of(merge):
            if not graph.is_back_edge(src, merge):
                into.setdefault(src, []).append(merge)
    return into
