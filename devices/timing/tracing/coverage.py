"""How many nodes of a step a trace knows: a trace that knows few of them is of another graph.

    step               x -> mm -> tanh -> sum, and log in a branch that the trace did not take
    trace              mm, tanh
    coverage           2 of 3: x takes no time, and log did not run

Only nodes that take time count, as a runtime may leave others out: constants are folded, identities go. A call counts
as known by the nodes of its functions. In a step where nothing takes time all nodes count.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.arrays import owners
from ....graph.ops.record import TRANSFERS, NodeClass
from ...kernels.op_cost import is_free

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags


class Coverage(NamedTuple):
    """The nodes of a step that take time, and how many of these a trace knows."""

    known: int
    nodes: int

    def text(self) -> str:
        """In words."""
        return f"the trace knows {self.known} of the {self.nodes} nodes of the step that take time"


def coverage_of(graph: JoinedGraph, traced: Collection[str], taken: Mapping[str, Collection[int]]) -> Coverage:
    """What a trace of the nodes `traced` covers of a graph; `taken` has the outputs that each Switch took in it."""
    heads = {name[:end] for name in traced for end, letter in enumerate(name) if letter == "/"}
    may_run = ~_dead(graph, taken) & ~graph.of_class(*TRANSFERS, NodeClass.ARG, NodeClass.RETVAL)
    counts = may_run & ~np.array([is_free(op) for op in graph.ops], np.bool_)[graph.kind_of]
    names = [graph.names[n] for n in np.flatnonzero(counts if counts.any() else may_run).tolist()]
    return Coverage(sum(name in traced or name in heads for name in names), len(names))


def check_coverage(coverage: Coverage) -> list[str]:
    """A warning for a trace that knows less than half of the step.

    InvalidArgumentError for one that knows less than a tenth.
    """
    if 10 * coverage.known < coverage.nodes:
        raise InvalidArgumentError(
            f"the trace is of another graph, or of another step: {coverage.text()}; give the trace of a run of this "
            "graph with these fetches"
        )
    return [f"{coverage.text()}: the others take what their model says"] if 2 * coverage.known < coverage.nodes else []


def _dead(graph: JoinedGraph, taken: Mapping[str, Collection[int]]) -> Flags:
    """The nodes behind outputs that no Switch took: those with such an input, and Merges that have no other ones."""
    dead = np.zeros(len(graph), np.bool_)
    all_switches: list[int] = np.flatnonzero(graph.of_class(NodeClass.SWITCH)).tolist()
    switches = {n: taken[graph.names[n]] for n in all_switches if taken.get(graph.names[n])}
    if not switches:
        return dead
    data = list(
        zip(
            graph.input_src.tolist(),
            graph.input_output.tolist(),
            owners(np.diff(graph.input_start)).tolist(),
            strict=True,
        )
    )
    consumers = _consumers(graph)
    live_inputs = np.diff(graph.input_start).astype(np.int64)
    is_merge = graph.of_class(NodeClass.MERGE)
    reached = [target for src, output, target in data if src in switches and output not in switches[src]]
    while reached:
        node = reached.pop()
        live_inputs[node] -= 1
        if not dead[node] and (not is_merge[node] or live_inputs[node] <= 0):
            dead[node] = True
            reached += consumers.get(node, [])
    return dead


def _consumers(graph: JoinedGraph) -> dict[int, list[int]]:
    """By node those that it feeds, releases, or sends to; once for each edge."""
    receives = np.flatnonzero(graph.sender >= 0)
    src = np.concatenate([graph.input_src, graph.control_src, graph.sender[receives]]).tolist()
    dst = np.concatenate([owners(np.diff(graph.input_start)), owners(np.diff(graph.control_start)), receives]).tolist()
    consumers: dict[int, list[int]] = {}
    for source, target in zip(src, dst, strict=True):
        consumers.setdefault(source, []).append(target)
    return consumers
