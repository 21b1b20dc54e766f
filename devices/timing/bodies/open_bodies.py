"""Bodies whose nodes are asked for when they are ready, as nobody knows before what they do, nor what Switches choose.

Such a body is a whole level, with all its nodes. An edge has the port that it enters and the output that it leaves, as
values go along it, or dead tokens:

    level      p -> Switch(x, p);  Switch:0 -> a,  Switch:1 -> b;  Merge(a, b)
    at end     Switch: a by output 0, b by output 1;   a: Merge at port 0;   b: Merge at port 1
    waits      Switch 2, a 1, b 1, Merge 1: whichever comes
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....graph.analysis.levels import frames_of
from ....graph.arrays import Flags, Numbers, grouped
from ....graph.columns import Ids
from ....graph.ops.record import RECVS, SENDS, NodeClass
from ...kernels.op_cost import is_free
from ..costs.source import FREE
from ..hardware.engine import Duty
from ..memory.tensors import KnownShapes
from .body import Asked, Body, Consumers, NodePart, TokenEdges
from .dependencies import Edges, dependencies, edges_of, merges_after
from .levels import Levels
from .node_places import NodePlaces

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph


class OpenBodies:
    """The bodies of a graph that is asked: by frame, each a whole level; one body if there is nothing but nodes.

    `levels` is None in the second case.
    """

    def __init__(self, places: NodePlaces, deferred: Collection[int]) -> None:
        """`deferred` are the nodes whose kernels only begin something, calls among them."""
        self.graph = graph = places.graph
        self.is_open = not {NodeClass.SWITCH, NodeClass.ENTER}.isdisjoint(graph.classes)
        self._places = places
        free = np.array([is_free(op) for op in graph.ops], np.bool_)[graph.kind_of] | places.is_call
        self._duty = places.duties(places.is_call)
        waiting = np.zeros(len(graph), np.bool_)
        waiting[list(deferred)] = True
        self._duty[waiting & ~places.is_call & (self._duty != Duty.COLLECTIVE)] = Duty.WAIT
        self._parts = _parts(graph, free, waiting, self._duty == Duty.COLLECTIVE)
        self._on_stream = places.on_stream(np.where(free, Duty.FREE, self._duty))
        self._edges = edges_of(graph, places.device, self._on_stream, places.memory)
        whole = self._whole(np.where(free, Duty.FREE, self._duty))
        calls = np.flatnonzero(places.is_call).tolist()
        self.levels: Levels | None = None
        if self.is_open or calls:
            self.levels = Levels(whole, frames_of(graph), self._edges, set(calls))
        self._bodies: dict[int, Body] = {}
        self._plain = whole

    def body(self, number: int) -> Body:
        """The body of a level."""
        if number not in self._bodies:
            self._bodies[number] = self._made(number)
        return self._bodies[number]

    def _whole(self, duty: Numbers) -> Body:
        graph = self.graph
        unknown = [(None,) * len(kind.output_types) for kind in graph.kinds]
        nothing = Consumers([0] * (len(graph) + 1), [])
        return Body(
            graph=graph,
            shapes=KnownShapes(graph, unknown, graph.kind_of),
            device=self._places.device,
            duty=duty.astype(np.uint8),
            costs=[FREE],
            cost_of=np.zeros(len(graph), np.int64),
            time_ns=[UNKNOWN_NS] * len(graph),
            routes=self._places.routes(np.flatnonzero(graph.sender >= 0)),
            copied_bytes={},
            waits=[],
            consumers=nothing,
            launch_consumers=nothing if self._on_stream.any() else None,
            on_stream=bytearray(self._on_stream),
            into_merges={},
        )

    def _with_consumers(self, body: Body) -> Body:
        """The body of a graph without levels, with who waits for whom, as those know it who read what ran."""
        into_merges = merges_after(self.graph)
        waits, consumers, launches = dependencies(self.graph, self._edges, self._on_stream, into_merges)
        return replace(body, waits=waits, consumers=consumers, launch_consumers=launches, into_merges=into_merges)

    def _made(self, number: int) -> Body:
        if self.levels is None:
            edges = self._edges.at(~self.graph.closes_loop(self._edges.src, self._edges.dst))
            nodes = np.arange(len(self.graph), dtype=np.int32)
            return self._asked(self._with_consumers(self._plain), nodes, edges, np.zeros(0, np.bool_))
        nodes = np.array(sorted(self.levels.frames.all[number].nodes), np.int32)
        edges, crosses = self.levels.edges(number)
        local = self.levels.local(nodes)
        part = self.levels.part(nodes, local, edges.at(crosses))
        inside = Edges(local[edges.src], edges.output, local[edges.dst], edges.port, edges.at_launch)
        return self._asked(part, nodes, inside, crosses)

    def _asked(self, body: Body, nodes: Ids, edges: Edges, crosses: Flags) -> Body:
        """A body with the columns that the player asks by; the edges that `crosses` marks begin elsewhere."""
        is_merge = body.graph.of_class(NodeClass.MERGE)
        into_merge = is_merge[edges.dst] & (edges.output >= 0)
        waits = np.bincount(edges.dst[~into_merge], minlength=len(nodes)) + is_merge
        inside = edges.at(~crosses) if len(crosses) else edges
        if not self.is_open:  # as in a body that is known: a Merge of several inputs comes last
            inside = inside.at(np.argsort(into_merge, kind="stable"))
        parts, left = [self._parts[n] for n in nodes.tolist()], waits.tolist()
        ends, launches = inside.at(~inside.at_launch), inside.at(inside.at_launch)
        asked = Asked(
            parts=parts,
            duty=self._duty[nodes].astype(np.uint8),
            at_end=_ends(ends, len(nodes)),
            at_launch=None if body.launch_consumers is None else _ends(launches, len(nodes)),
            is_merge=is_merge.tolist(),
            is_trigger=body.graph.of_class(NodeClass.CONTROL_TRIGGER).tolist(),
            num_inputs=[len(properties.input_types) for properties in body.graph.properties],
            begins=[n for n, part in enumerate(parts) if left[n] == (part is NodePart.RECEIVES)],
            is_open=self.is_open,
        )
        return replace(body, waits=left, asked=asked)


UNKNOWN_NS = -1
"""the time of a node that is asked for"""


def _parts(graph: JoinedGraph, free: Flags, deferred: Flags, joins: Flags) -> list[NodePart]:
    parts = np.where(free, NodePart.MAY_BE_FREE, NodePart.TAKES_DEVICE)
    parts[deferred] = NodePart.DEFERRED
    parts[joins] = NodePart.JOINS
    parts[graph.of_class(*SENDS)] = NodePart.SENDS
    parts[graph.of_class(*RECVS)] = NodePart.RECEIVES
    return list(map(NodePart, parts.tolist()))


def _ends(edges: Edges, count: int) -> TokenEdges:
    starts, order = grouped(edges.src, count)
    return TokenEdges(starts.tolist(), *(column[order].tolist() for column in (edges.dst, edges.port, edges.output)))
