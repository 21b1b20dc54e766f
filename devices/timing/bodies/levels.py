"""The bodies of levels: what is outside all loops, and an iteration of each loop, each with its live nodes alone.

    while i < n: x = x * x, lowered

    level 0      x, Enter, ... y
    level 1      Merge, Less, LoopCond, Switch, Mul, NextIteration         one body for the first iteration, another for
                                                                           the others
                 Merge, Less, LoopCond, Switch, Exit                       the last one

Edges between levels are tokens: an Enter gives one to the first iteration (a constant Enter to every one), a
NextIteration to the next iteration, an Exit to the level around the loop.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ....graph.arrays import Flags, Numbers
from ....graph.columns import Ids
from ....graph.edge_ends import Output
from ....graph.ops.record import NodeClass
from .body import Body, Gates
from .dependencies import Edges, consumers_of
from .liveness import Level, Liveness, Variant

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph


class Levels:
    """The levels of a planned graph and their bodies, by frame; `tokens` are the edges into other levels by source."""

    def __init__(self, whole: Body, liveness: Liveness, edges: Edges, calls: Collection[int]) -> None:
        """`calls` are the nodes that run other graphs."""
        self.whole = whole
        self.liveness = liveness
        self.frames = liveness.frames
        self.calls = calls
        self.graph = whole.graph
        self.all = liveness.levels
        of = np.array(self.frames.of, np.int64)
        self._is_next = self.graph.of_class(NodeClass.NEXT_ITERATION)
        crosses = (of[edges.src] != of[edges.dst]) | self.graph.closes_loop(edges.src, edges.dst)
        self.tokens: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
        """consumers in other levels or iterations by their source: of its end, and of its launch"""
        columns = (edges.src[crosses], edges.dst[crosses], edges.at_launch[crosses])
        for src, dst, at_launch in zip(*(column.tolist() for column in columns), strict=True):
            self.tokens[at_launch].setdefault(src, []).append(dst)
        self._edges = [
            (edges.at(of[edges.dst] == number), crosses[of[edges.dst] == number]) for number in range(len(self.all))
        ]
        self._bodies: dict[tuple[int, Variant], Body] = {}

    def body(self, number: int, variant: Variant) -> Body:
        """The body of one iteration of a level."""
        key = number, variant
        if key not in self._bodies:
            self._bodies[key] = self._made(number, variant)
        return self._bodies[key]

    def _made(self, number: int, variant: Variant) -> Body:
        level, whole, graph = self.all[number], self.whole, self.graph
        dead = self.liveness.dead_outputs(number, variant)
        nodes = np.array(sorted(n for n in level.frame.nodes if (n, -1) not in dead), np.int32)
        local = np.full(len(graph), -1, np.int64)
        local[nodes] = np.arange(len(nodes))
        edges, crosses, into_merges = self._counted(level, variant, dead, local)
        part = graph.part(nodes)
        src, dst = local[edges.src[~crosses]], local[edges.dst[~crosses]]
        waits = np.bincount(local[edges.dst], minlength=len(nodes))
        for merge in {merge for merges in into_merges.values() for merge in merges}:
            waits[merge] += 1
        at_launch = edges.at_launch[~crosses]
        number_of = dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
        return replace(
            whole,
            graph=part,
            shapes=whole.shapes.part(part, nodes),
            device=whole.device[nodes],
            duty=whole.duty[nodes],
            cost_of=whole.cost_of[nodes],
            time_ns=[whole.time_ns[n] for n in nodes.tolist()],
            routes={number_of[n]: route for n, route in whole.routes.items() if n in number_of},
            copied_bytes={number_of[n]: size for n, size in whole.copied_bytes.items() if n in number_of},
            waits=waits.tolist(),
            consumers=consumers_of(src[~at_launch], dst[~at_launch], len(nodes)),
            launch_consumers=(
                consumers_of(src[at_launch], dst[at_launch], len(nodes)) if whole.launch_consumers is not None else None
            ),
            on_stream=bytearray(whole.on_stream[n] for n in nodes.tolist()),
            into_merges=into_merges,
            gates=self._gates(nodes, local, part, edges.at(crosses)),
        )

    def _counted(
        self, level: Level, variant: Variant, dead: set[Output], local: Numbers
    ) -> tuple[Edges, Flags, dict[int, list[int]]]:
        """The edges whose ends live nodes wait for, which of them cross levels, and Merges of several live inputs."""
        edges, crosses = self._edges[level.number]
        counted = local[edges.dst] >= 0
        several: dict[int, list[int]] = {}
        into = self.graph.of_class(NodeClass.MERGE, NodeClass.CONTROL_TRIGGER)[edges.dst]
        for k in np.flatnonzero(counted & into).tolist():
            counted[k] = self._gives(level, variant, dead, edges, k)
            if counted[k] and edges.output[k] >= 0 and self.graph.node_class(int(edges.dst[k])) is NodeClass.MERGE:
                several.setdefault(int(edges.dst[k]), []).append(k)
        into_merges: dict[int, list[int]] = {}
        for merge, inputs in several.items():
            if len(inputs) > 1 and not crosses[inputs].any():
                counted[inputs] = False
                for k in inputs:
                    into_merges.setdefault(int(local[edges.src[k]]), []).append(int(local[merge]))
        return edges.at(counted), crosses[counted], into_merges

    def _gives(self, level: Level, variant: Variant, dead: set[Output], edges: Edges, k: int) -> bool:
        """Whether an edge into a Merge or trigger that runs brings a live tensor in this variant."""
        src, output, dst = int(edges.src[k]), int(edges.output[k]), int(edges.dst[k])
        if dst in level.merges and output >= 0:
            return variant.is_first != bool(self._is_next[src])
        return not level.is_dead((src, output), dead, variant, self.liveness.dead_exits)

    def _gates(self, nodes: Ids, local: Numbers, part: JoinedGraph, outside: Edges) -> Gates:
        places, counts = np.unique(part.place, return_counts=True)
        gates = Gates(
            whole=self.graph,
            nodes=nodes.tolist(),
            local=local.tolist(),
            outside=set(zip(outside.src.tolist(), outside.dst.tolist(), strict=True)),
            place_of=part.place.tolist(),
            counts=dict(zip(places.tolist(), counts.tolist(), strict=True)),
        )
        for k, n in enumerate(nodes.tolist()):
            match part.node_class(k):
                case NodeClass.ENTER:
                    gates.enters[k] = self.frames.opened_by(self.graph, n)
                case NodeClass.NEXT_ITERATION:
                    gates.nexts.add(k)
                case NodeClass.EXIT:
                    gates.exits.add(k)
            if n in self.calls:
                gates.calls.add(k)
        return gates
