"""The longest ways through one graph, whose nodes have times; with loops, each of so many iterations.

    while i < n: x = x * x;  y = -x          Merge, Less, Mul, Neg: 0, 1, 5, 4 ns; 10 iterations

    an iteration        Merge -> Less -> Switch -> Mul -> NextIteration          6 ns
    out of the loop     Merge -> Less -> Switch -> Exit -> Neg                   5 ns
    from the Enter      10 iterations, then out                                 65 ns

Iterations count as if they came one after the other, each with its longest way. In an iteration the ways end with it,
at its NextIterations. What comes behind is the same for all its nodes: further iterations, and the way out. Only in the
turn that finds the end of the loop, ways lead out.

The members of one collective are one place, as they end together: what follows one of them follows all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.analysis.levels import OUTSIDE
from ....graph.arrays import grouped, inverse, owners, topological_order
from ....graph.ops.record import NodeClass

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.analysis.levels import Frame, Frames
    from ....graph.arrays import Numbers

_NEVER = -(1 << 60)  # the way of what leads only to another iteration of a loop that is left


class GraphWays(NamedTuple):
    """By joint number the longest way from the start of a node, in ns, to the end of the iteration that it is in.

    `leaving_ns` has by frame the nodes in its inner loops, and their longest way to the end of an iteration of it, in
    the turns that find the ends of these loops; `exit_ns` by frame and inner frame that from the start of such a turn.
    `turn_ns` is by frame the longest way through an iteration. `times_ns` are the times of the nodes alone.
    """

    from_start_ns: list[int]
    leaving_ns: dict[int, dict[int, int]]
    exit_ns: dict[tuple[int, int], int]
    turn_ns: dict[int, int]
    times_ns: Sequence[int]

    @property
    def length_ns(self) -> int:
        """The longest way through the graph."""
        return self.turn_ns[OUTSIDE] if self.turn_ns else max(self.from_start_ns, default=0)


def longest_ways(
    graph: JoinedGraph,
    times_ns: Sequence[int],
    meetings: Sequence[Sequence[int]],
    frames: Frames | None = None,
    counts: Sequence[int] = (),
) -> GraphWays:
    """The longest ways of a graph. `meetings` are the members of each collective, `counts` the iterations by frame."""
    if frames is None:
        order = _Order(graph, meetings, [])
        ways = [0] * len(graph)
        order.fill(ways, reversed(order.nodes), times_ns, frozenset())
        return GraphWays([ways[n] for n in order.place], {}, {}, {}, times_ns)
    return _LoopWays(graph, times_ns, meetings, frames, counts).found()


class _Order:
    """Who follows whom, and a topological order of places; `place` has by node the first member of its collective.

    Where collectives wait for each other, which cannot run, no members are joined.
    """

    def __init__(self, graph: JoinedGraph, meetings: Sequence[Sequence[int]], more: Sequence[tuple[int, int]]) -> None:
        """`more` are edges that the graph does not have."""
        starts, targets = graph.consumers()
        ends = np.array(more, np.int64).reshape(-1, 2).T
        src = np.concatenate([owners(np.diff(starts)), ends[0]])
        dst = np.concatenate([targets, ends[1]])
        place = np.arange(len(graph))
        for members in meetings:
            place[members] = members[0]
        if not self._take(place, src, dst):
            self._take(np.arange(len(graph)), src, dst)

    def _take(self, place: Numbers, src: Numbers, dst: Numbers) -> bool:
        """Takes over the edges between places; False if they go round in a circle."""
        src, dst = place[src], place[dst]
        src, dst = src[src != dst], dst[src != dst]
        starts, edges = grouped(src, len(place))
        targets = dst[edges]
        self.nodes = topological_order(starts, targets)
        self.place: list[int] = place.tolist()
        self._starts: list[int] = starts.tolist()
        self._targets: list[int] = targets.tolist()
        return len(self.nodes) == len(place)

    def fill(self, ways: list[int], backwards: Iterable[int], times_ns: Sequence[int], ends: Collection[int]) -> None:
        """Writes the ways of places, the last one first. From `ends` no way leads on; what has no way yet counts 0."""
        starts, targets = self._starts, self._targets
        for n in backwards:
            if n in ends:
                ways[n] = _NEVER
                continue
            first, end = starts[n], starts[n + 1]
            ways[n] = times_ns[n] + (max([ways[target] for target in targets[first:end]]) if first < end else 0)


class _LoopWays:
    """The longest ways of a graph with loops, frame by frame, the innermost first."""

    def __init__(
        self,
        graph: JoinedGraph,
        times_ns: Sequence[int],
        meetings: Sequence[Sequence[int]],
        frames: Frames,
        counts: Sequence[int],
    ) -> None:
        self._frames = frames
        self._counts = counts
        self._times = list(times_ns)
        # All Enters count with all iterations: those of constants too, which lead to no Merge.
        into = [(enter, merge) for frame in frames.all for enter in frame.enters for merge in frame.merges]
        self._order = _Order(graph, meetings, into)
        self._rank: list[int] = inverse(np.array(self._order.nodes, np.int64)).tolist()
        self._nexts = [n for n in range(len(graph)) if graph.node_class(n) is NodeClass.NEXT_ITERATION]
        self._scratch = [0] * len(graph)
        self._ways = GraphWays([0] * len(graph), {}, {}, {}, times_ns)

    def found(self) -> GraphWays:
        """The ways of all frames."""
        frames = self._frames.all
        for number in sorted(range(len(frames)), key=lambda number: -frames[number].depth):
            self._find(number)
        return self._ways

    def _find(self, number: int) -> None:
        """Finds the ways through an iteration of a frame, whose inner loops are known, and out of these."""
        frames, of, place = self._frames.all, self._frames.of, self._order.place
        inside = _frames_inside(frames, number)
        places = {place[n] for each in inside for n in frames[each].nodes}
        ends = {place[n] for n in self._nexts if of[n] in inside and of[n] != number}
        ways = self._scratch
        self._order.fill(ways, sorted(places, key=self._rank.__getitem__, reverse=True), self._times, ends)
        from_start, leaving, exit_ns, turn_ns, _ = self._ways
        for n in frames[number].nodes:
            from_start[n] = max(ways[place[n]], 0)
        turn = turn_ns[number] = max([from_start[n] for n in frames[number].nodes], default=0)
        out = leaving[number] = {n: max(ways[place[n]], 0) for inner in inside[1:] for n in frames[inner].nodes}
        for inner in inside[1:]:
            exit_ns[number, inner] = max([out[merge] for merge in frames[inner].merges], default=0)
        for enter in frames[number].enters:
            self._times[place[enter]] += self._counts[number] * turn
        for n in places:
            ways[n] = 0


def _frames_inside(frames: Sequence[Frame], number: int) -> list[int]:
    """A frame, and those in it after it."""
    inside = {number: None}
    for inner in range(number + 1, len(frames)):  # a frame has a number before those in it
        if frames[inner].parent in inside:
            inside[inner] = None
    return list(inside)
