"""The longest chain of durations of a virtual step, along what depended on what.

Besides the rows there are vertices for what has no row of its own:

    inputs of a call -> begin of the call -> begin of a run -> rows of the run -> end of the run -> call
    rows of an iteration, in one partition -> it is done -> the iteration after as many as may be open begins
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....devices.timing.hardware.engine import Duty
from ....graph.arrays import owners, starts_of, topological_order
from ....graph.ops.record import LOOPS

if TYPE_CHECKING:
    from .ran_graph import RanGraph
    from .ran_rows import Activation


def bound_ns(graph: RanGraph, activations: Sequence[Activation]) -> int:
    """The longest chain in ns; `activations` are those of the rows of the graph."""
    return _Chains(graph, activations).longest()


class _Chains:
    def __init__(self, graph: RanGraph, activations: Sequence[Activation]) -> None:
        self.graph = graph
        self.weights = _durations(graph, activations)
        self.edges: list[tuple[int, int]] = []
        self._vertices: dict[Hashable, int] = {}
        self._at = list(zip(graph.rows, graph.bases, strict=True))
        self._begins = {base + node for r, base in self._at for node in r.calls}

    def longest(self) -> int:
        """The largest sum of weights along a path."""
        for number in range(len(self._at)):
            self._add_dependencies(number)
            self._add_calls(number)
            self._add_turns(number)
        weights = [*self.weights, *[0] * len(self._vertices)]
        src, dst = np.array(self.edges, np.int64).reshape(-1, 2).T
        order = np.argsort(src, kind="stable")
        starts, targets = starts_of(src, len(weights)), dst[order]
        ends, first, consumers = list(weights), starts.tolist(), targets.tolist()
        for v in topological_order(starts, targets):
            for target in consumers[first[v] : first[v + 1]]:
                ends[target] = max(ends[target], ends[v] + weights[target])
        return max(ends, default=0)

    def _vertex(self, *key: Hashable) -> int:
        return self._vertices.setdefault(key, len(self.weights) + len(self._vertices))

    def _begin(self, row: int) -> int:
        """What the inputs of a row release: the row, or the begin of the call."""
        return self._vertex("call", row) if row in self._begins else row

    def _add_dependencies(self, number: int) -> None:
        """What waited for what among the rows that ran: data, control, sends and their receives."""
        r, base = self._at[number]
        graph, ran, inputs = r.body.graph, r.shapes, self.graph.inputs(number)
        end = base + len(r.body)
        for dst, src in zip(inputs.dst.tolist(), inputs.src.tolist(), strict=True):
            if dst in ran and (not base <= src < end or src - base in ran):
                self.edges.append((src, self._begin(base + dst)))
        controlled = owners(np.diff(graph.control_start))
        received = np.flatnonzero(graph.sender >= 0)
        sources = np.concatenate([graph.control_src, graph.sender[received]]).tolist()
        for src, dst in zip(sources, np.concatenate([controlled, received]).tolist(), strict=True):
            if src in ran and dst in ran:
                self.edges.append((base + src, self._begin(base + dst)))
        self.edges += [(self.graph.row(row), self._begin(base + node)) for node, row in r.released_by]

    def _add_calls(self, number: int) -> None:
        r, base = self._at[number]
        rows = [base + node for node in r.shapes]
        self.edges += [(row, self._vertex("end", r.run)) for row in rows]
        if r.called is not None:
            self.edges += [(self._vertex("begin", r.run), self._begin(row)) for row in rows]
        for node, calls in r.calls.items():
            before = self._begin(base + node)
            for call in calls:
                begin, end = self._vertex("begin", call.base), self._vertex("end", call.base)
                self.edges += [(before, begin), (begin, end), (end, base + node)]
                if self.graph.calls_of(r, node) in LOOPS:
                    before = end

    def _add_turns(self, number: int) -> None:
        """An iteration is done in a partition with its nodes, the loops in it and the iteration before."""
        r, base = self._at[number]
        around, before, bound_by = r.turn
        if around < 0:
            return
        place: list[int] = r.body.graph.place.tolist()
        fed = {node for node, _ in r.fed} | {node for node, _ in r.released_by}
        for node in r.shapes:
            self.edges.append((base + node, self._vertex("done", r.base, place[node])))
            if bound_by >= 0 and node in fed:
                self.edges.append((self._vertex("done", bound_by, place[node]), self._begin(base + node)))
        for at in {place[node] for node in r.shapes}:
            done = self._vertex("done", r.base, at)
            self.edges.append((done, self._vertex("done", around, at)))
            if before >= 0:
                self.edges.append((self._vertex("done", before, at), done))


def _durations(graph: RanGraph, activations: Sequence[Activation]) -> list[int]:
    """By row its time when it has its hardware to itself."""
    durations: list[int] = []
    for r, activation in zip(graph.rows, activations, strict=True):
        body = activation.body
        own = np.array([cost.time_ns for cost in body.costs], np.int64)[body.cost_of]
        own[(body.duty == Duty.FREE) | (body.duty == Duty.TRANSFER)] = 0
        for n, route in body.routes.items():
            own[n] = route.transfer_ns(r.sizes[n])
        durations += own.tolist()
    return durations
