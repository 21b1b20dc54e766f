"""Lists the graphs that a run may execute, a graph and all functions it may call, and their nodes without a kernel.

    graph that calls f, which has a node "n" of an unknown op      graphs_that_run: ("", graph), ("f", body)
                                                                   missing_kernels: MissingKernel("f", "n", "Unknown")

Functions are listed as they run: lowered, pruned, with the attrs of the call, as gradient functions where those are
called. The listed nodes are those for which a session raises "no kernel": both ask `binding.has_kernel`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...devices.pipeline.bodies import body_of
from ...errors import PartitaError
from ...graph.columns import SINK_ID
from ...graph.library.calls import called_by, calls_functions, calls_gradient
from ...graph.passes.body_graph import body_graph
from ..plans.binding import has_kernel
from ..plans.roles import Role, role_of

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.graph import Graph
    from ...graph.library.function_library import FunctionLibrary


@dataclass(frozen=True, slots=True)
class MissingKernel:
    """A node without kernel, in a function or, with "", in the graph itself."""

    function: str
    node: str
    op: str


def graphs_that_run(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """The graph, with the name "", then the pruned body of each function that it may call, with its name.

    A function that is called with different attrs is listed for each. A function that is missing or invalid is left
    out: its call fails for another reason.
    """
    yield "", graph
    library, seen, waiting = graph.functions, set(), [graph]
    while waiting:
        for kind in waiting.pop().distinct_properties()[0]:
            if role_of(kind.op) is not Role.COMPUTE or not calls_functions(kind, library):
                continue
            gradient = calls_gradient(kind)
            for function in called_by(kind, library):
                key = function.SerializeToString(deterministic=True), gradient
                body = None if key in seen else _body(library, function, gradient=gradient)
                seen.add(key)
                if body is not None:
                    yield function.name, body
                    waiting.append(body)


def _body(library: FunctionLibrary, function: NameAttrList, *, gradient: bool) -> Graph | None:
    try:
        return body_graph(body_of(library, function, gradient=gradient))
    except PartitaError:
        return None


def missing_kernels(name: str, graph: Graph) -> Iterator[MissingKernel]:
    """The nodes of one of `graphs_that_run` that need a kernel and have none, by ascending id."""
    kinds, column = graph.distinct_properties()
    has_none = [role_of(kind.op) is Role.COMPUTE and not has_kernel(kind, graph.functions) for kind in kinds]
    if any(has_none):
        for node_id in np.flatnonzero(np.array([*has_none, False])[column]).tolist():
            if node_id > SINK_ID:
                yield MissingKernel(name, graph.node_name(node_id), kinds[column[node_id]].op)
