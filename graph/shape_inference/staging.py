"""Staging areas: what Unstage takes out in one step has the shapes of what Stage puts in, in an earlier step.

    step 1    Stage(x)                 x has shape (32, 224)
    step 2    y = Unstage, Stage(x)    so y has it

The two nodes of a step are not joined by an edge, and mostly Unstage comes first. So the graph is walked, the shapes of
what is put in are noted, and the graph is walked again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..analysis.dims import common_shape
from ..analysis.joined import JoinedGraph
from .calls import Shapes

_Area = tuple[bytes, bytes, int]
"""container, shared name, device"""


class StagingAreas:
    """The areas of one graph; `known` has by Unstage node the shapes that it takes out, once they are noted."""

    def __init__(self, graph: JoinedGraph) -> None:
        self.known: dict[int, Shapes] = {}
        self._puts = _by_area(graph, "Stage")
        self._takes = {area: nodes for area, nodes in _by_area(graph, "Unstage").items() if area in self._puts}

    def takers(self) -> list[int]:
        """The nodes that take out what others put in."""
        return [n for nodes in self._takes.values() for n in nodes]

    def note(self, read_by: Callable[[int], Shapes]) -> bool:
        """Notes the shapes of what is put in, given what a node reads; whether there are any."""
        for area, takers in self._takes.items():
            columns = zip(*map(read_by, self._puts[area]), strict=False)  # nodes of one area put in equal components
            shapes = tuple([common_shape(list(column)) for column in columns])
            self.known.update(dict.fromkeys(takers, shapes))
        return bool(self.known)


def _by_area(graph: JoinedGraph, op: str) -> dict[_Area, list[int]]:
    """The nodes of an op by their area; nodes without a name share nothing."""
    nodes: dict[_Area, list[int]] = {}
    if op in graph.ops:
        is_op = np.array([name == op for name in graph.ops], np.bool_)
        for n in np.flatnonzero(is_op[graph.kind_of]).tolist():
            attrs = graph.properties_of(n).attrs
            if attrs["shared_name"]:
                area = attrs["container"], attrs["shared_name"], int(graph.device_of[n])
                nodes.setdefault(area, []).append(n)
    return nodes
