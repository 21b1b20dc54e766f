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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.analysis.levels import OUTSIDE
from ....graph.arrays import Flags, Numbers
from ....graph.columns import Ids
from ....graph.ops.record import NodeClass
from .body import Body, Gates
from .dependencies import Edges, consumers_of
from .liveness import Liveness, Variant

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.analysis.levels import Frames


class TokenTarget(NamedTuple):
    """Where an edge into another level or iteration ends, by joint number, and the output that it leaves."""

    node: int
    port: int
    output: int


Gives = Callable[[int, int, int], bool]
"""whether an output (by node and number, -1 of a control edge) gives a live token to a Merge or trigger"""


class Levels:
    """The levels of a graph, by frame; `tokens` are the edges into other levels by source."""

    def __init__(self, whole: Body, frames: Frames, edges: Edges, calls: Collection[int]) -> None:
        """`whole` has the columns of the graph; `calls` are the nodes that run other graphs."""
        self.whole = whole
        self.frames = frames
        self.calls = calls
        self.graph = whole.graph
        of = np.array(self.frames.of, np.int64)
        crosses = frames.crosses(self.graph, edges.src, edges.dst)
        self.tokens: tuple[dict[int, list[TokenTarget]], dict[int, list[TokenTarget]]] = ({}, {})
        """consumers in other levels or iterations by their source: of its end, and of its launch"""
        for src, output, dst, port, at_launch in zip(*(column[crosses].tolist() for column in edges), strict=True):
            self.tokens[at_launch].setdefault(src, []).append(TokenTarget(dst, port, output))
        self._is_merge = self.graph.of_class(NodeClass.MERGE)
        asks = self.graph.of_class(NodeClass.MERGE, NodeClass.CONTROL_TRIGGER)
        self._compiled: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Body] = {}
        self._edges = [(edges, crosses)]
        if len(frames.all) > 1:
            ends_in = [of[edges.dst] == number for number in range(len(frames.all))]
            self._edges = [(edges.at(ends), crosses[ends]) for ends in ends_in]
        is_planned = len(whole.waits) == len(self.graph)  # it is left open where nodes are asked
        self._is_plain = is_planned and len(frames.all) == 1 and not self._is_merge.any() and not crosses.any()
        self._asking = [_numbered(own, np.flatnonzero(asks[own.dst])) for own, _ in self._edges]

    def edges(self, number: int) -> tuple[Edges, Flags]:
        """The edges that end in a level, and which of them come from another one."""
        return self._edges[number]

    def compiled(self, number: int, nodes: Collection[int], gives: Gives) -> Body:
        """The body of one iteration of a level in which only `nodes` run."""
        chosen, live = tuple(sorted(nodes)), set(nodes)
        silent = tuple([k for k, *edge in self._asking[number] if edge[2] in live and not gives(*edge)])
        key = number, chosen, silent
        if key not in self._compiled:
            self._compiled[key] = self._made(number, np.array(chosen, np.int32), silent)
        return self._compiled[key]

    def _made(self, number: int, chosen: Ids, silent: Sequence[int]) -> Body:
        """The body of live nodes, which do not wait for the `silent` edges of the level."""
        local = self.local(chosen)
        if len(chosen) == len(self.graph) and self._is_plain and not silent:
            return self._whole(chosen, local)
        counted: Flags = local[self._edges[number][0].dst] >= 0
        counted[list(silent)] = False
        edges, crosses, into_merges = self._counted(number, counted, local)
        waits = np.bincount(local[edges.dst], minlength=len(chosen))
        for merge in {merge for merges in into_merges.values() for merge in merges}:
            waits[merge] += 1
        src, dst, at_launch = local[edges.src[~crosses]], local[edges.dst[~crosses]], edges.at_launch[~crosses]
        deaths = self._deaths(number, local, silent)
        if deaths:
            causes, heirs = local[np.array(deaths)].T
            waits += np.bincount(heirs, minlength=len(chosen))
            src, dst = np.concatenate([src, causes]), np.concatenate([dst, heirs])
            at_launch = np.concatenate([at_launch, np.zeros(len(deaths), np.bool_)])
        on_stream = self.whole.launch_consumers is not None
        return replace(
            self.part(chosen, local, edges.at(crosses)),
            waits=waits.tolist(),
            consumers=consumers_of(src[~at_launch], dst[~at_launch], len(chosen)),
            launch_consumers=consumers_of(src[at_launch], dst[at_launch], len(chosen)) if on_stream else None,
            into_merges=into_merges,
        )

    def _whole(self, chosen: Ids, local: Numbers) -> Body:
        """The body of all nodes of a graph whose only level is the root: who waits for whom is as in the graph."""
        gates = self._gates(chosen, local, self.graph, self._edges[OUTSIDE][0].at(self._edges[OUTSIDE][1]))
        return replace(self.whole, gates=gates, seats=dict(self.whole.seats))

    def local(self, nodes: Ids) -> Numbers:
        """By joint number the number in a body of these nodes, -1 for others."""
        local = np.full(len(self.graph), -1, np.int64)
        local[nodes] = np.arange(len(nodes))
        return local

    def part(self, nodes: Ids, local: Numbers, outside: Edges) -> Body:
        """The columns of some nodes, whose edges from other levels are `outside`; who waits for whom is left open."""
        whole, number_of = self.whole, dict(zip(nodes.tolist(), range(len(nodes)), strict=True))
        part = self.graph.part(nodes)
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
            seats={number_of[n]: seat for n, seat in whole.seats.items() if n in number_of},
            on_stream=bytearray(whole.on_stream[n] for n in nodes.tolist()),
            gates=self._gates(nodes, local, part, outside),
        )

    def _deaths(self, number: int, local: Numbers, silent: Sequence[int]) -> list[tuple[int, int]]:
        """For `silent` edges by which a node waits for a dead one: the live nodes after which that is known to be dead.

        Switch -> a (dead) -> ControlTrigger      the trigger waits for the Switch
        Switch -> a (dead) -> Merge, by data      nothing: a Merge goes on with what is live
        """
        edges, crosses = self._edges[number]
        waited = {
            (int(edges.src[k]), int(edges.dst[k]))
            for k in silent
            if not (self._is_merge[edges.dst[k]] and edges.output[k] >= 0)
        }
        if not waited:
            return []
        inputs, consumers = dict[int, list[int]](), dict[int, list[int]]()
        for src, dst in zip(edges.src[~crosses].tolist(), edges.dst[~crosses].tolist(), strict=True):
            inputs.setdefault(dst, []).append(src)
            consumers.setdefault(src, []).append(dst)
        dead = _dead_from([src for src, _ in waited], inputs, local)
        causes = sorted({src for node in dead for src in inputs.get(node, ()) if local[src] >= 0})
        return [
            (cause, heir)
            for cause in causes
            for node in _dead_from(consumers.get(cause, ()), consumers, local)
            for heir in consumers.get(node, ())
            if (node, heir) in waited
        ]

    def _counted(self, number: int, counted: Flags, local: Numbers) -> tuple[Edges, Flags, dict[int, list[int]]]:
        """These edges, which of them cross levels, and Merges of several live inputs."""
        edges, crosses = self._edges[number]
        several: dict[int, list[int]] = {}
        for k in np.flatnonzero(counted & self._is_merge[edges.dst] & (edges.output >= 0)).tolist():
            several.setdefault(int(edges.dst[k]), []).append(k)
        into_merges: dict[int, list[int]] = {}
        for merge, inputs in several.items():
            if len(inputs) > 1 and not crosses[inputs].any():
                counted[inputs] = False  # what is not in `counted` any more is in `into_merges`
                for k in inputs:
                    into_merges.setdefault(int(local[edges.src[k]]), []).append(int(local[merge]))
        return edges.at(counted), crosses[counted], into_merges

    def _gates(self, nodes: Ids, local: Numbers, part: JoinedGraph, outside: Edges) -> Gates:
        counts = np.bincount(part.place)
        gates = Gates(
            whole=self.graph,
            nodes=nodes.tolist(),
            local=local.tolist(),
            outside=set(zip(outside.src.tolist(), outside.dst.tolist(), strict=True)),
            place_of=part.place.tolist(),
            counts={place: count for place, count in enumerate(counts.tolist()) if count},
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


def _dead_from(starts: Iterable[int], following: Mapping[int, Sequence[int]], local: Numbers) -> list[int]:
    """The dead nodes among `starts` and what leads on from them, the latest found first, as dead tokens go."""
    found, open_nodes = dict[int, None](), [node for node in starts if local[node] < 0]
    while open_nodes:
        node = open_nodes.pop()
        if node not in found:
            found[node] = None
            open_nodes += [other for other in following.get(node, ()) if local[other] < 0]
    return list(found)


def _numbered(edges: Edges, numbers: Numbers) -> list[tuple[int, int, int, int]]:
    """Some edges: number, source, output and end."""
    columns = (column[numbers].tolist() for column in (edges.src, edges.output, edges.dst))
    return list(zip(numbers.tolist(), *columns, strict=True))


class DecidedLevels(Levels):
    """The levels of a graph whose Switches are decided before an iteration begins: one body per variant."""

    def __init__(self, whole: Body, liveness: Liveness, edges: Edges, calls: Collection[int]) -> None:
        """`calls` are the nodes that run other graphs."""
        super().__init__(whole, liveness.frames, edges, calls)
        self.liveness = liveness
        self.all = liveness.levels
        self._is_next = self.graph.of_class(NodeClass.NEXT_ITERATION)
        self._bodies: dict[tuple[int, Variant], Body] = {}

    def body(self, number: int, variant: Variant) -> Body:
        """The body of one iteration of a level."""
        key = number, variant
        if key not in self._bodies:
            level, dead = self.all[number], self.liveness.dead_outputs(number, variant)

            def gives(src: int, output: int, dst: int) -> bool:
                if dst in level.merges and output >= 0:
                    return variant.is_first != bool(self._is_next[src])
                return not level.is_dead((src, output), dead, variant, self.liveness.dead_exits)

            live = [n for n in level.frame.nodes if (n, -1) not in dead]
            self._bodies[key] = self.compiled(number, live, gives)
        return self._bodies[key]
