"""What a run of a graph may come upon: its own nodes, and those of every function that they may call.

Flows in: a graph, lowered as sessions run it. Flows out: graphs, and the nodes that no kernel computes. Always holds:
functions are looked at as they are run: lowered, pruned, with the attrs of the call, their gradients where those are
called; the nodes found are those for which a session raises "no kernel", as `binding.has_kernel` decides for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...errors import PartitaError
from ...graph.columns import SINK_ID
from ...graph.library.calls import called_by, calls_functions, calls_gradient
from ...graph.passes.body_graph import body_graph
from ..plans.binding import has_kernel
from ..plans.roles import Role, role_of
from .functions import body_of

if TYPE_CHECKING:
    from ...graph import NameAttrList
    from ...graph.graph import Graph
    from ...graph.library.function_library import FunctionLibrary


@dataclass(frozen=True, slots=True)
class MissingKernel:
    """A node that no kernel computes; `function` is the one it is in, "" for the graph itself."""

    function: str
    node: str
    op: str


def graphs_that_run(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """The graph, under the name "", and what is run of each function that it may call, by name.

    A function that is called with several attrs comes several times. One that the library lacks, or whose body is not
    in order, is left out: a call of it fails for another reason than a kernel.
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
    """The nodes of a graph, one of `graphs_that_run`, that have no kernel and need one, by ascending id."""
    kinds, column = graph.distinct_properties()
    lacking = [role_of(kind.op) is Role.COMPUTE and not has_kernel(kind, graph.functions) for kind in kinds]
    if any(lacking):
        for node_id in np.flatnonzero(np.array([*lacking, False])[column]).tolist():
            if node_id > SINK_ID:
                yield MissingKernel(name, graph.node_name(node_id), kinds[column[node_id]].op)
