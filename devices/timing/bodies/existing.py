"""Whether a graph, or a function on a path of calls, has a loop or a conditional of a given name.

A name that the caller gives need not be asked for: its loop may be in a branch that is not taken. It is an error only
if nothing has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....errors import PartitaError
from ....graph.analysis.joined import JoinedGraph
from ....graph.analysis.levels import frame_name
from ....graph.library.calls import called_by, calls_functions, calls_gradient
from ....graph.ops.record import LOOPS, Calls, NodeClass
from ....graph.passes.body_graph import body_graph
from ...pipeline.bodies import body_of
from .conditions import Conditions


def has_loop(graph: JoinedGraph, name: str) -> bool:
    """Whether `name` is the frame of a loop, or a While or For, of the graph or of a function that is called in it."""
    for n, properties in enumerate(graph.properties):
        record = properties.op_def.record
        if record.node_class is NodeClass.ENTER and frame_name(properties) == name:
            return True
        if record.calls in LOOPS and graph.names[n] == name:
            return True
    return any(has_loop(body, inner) for body, inner in _bodies(graph, name))


def has_conditional(graph: JoinedGraph, name: str) -> bool:
    """Whether `name` is that of an If or Case, or of a node that yields a predicate, as `has_loop`."""
    if any(name in condition.names for condition in Conditions(graph).all):
        return True
    for n, properties in enumerate(graph.properties):
        if properties.op_def.record.calls in (Calls.IF, Calls.CASE) and graph.names[n] == name:
            return True
    return any(has_conditional(body, inner) for body, inner in _bodies(graph, name))


def _bodies(graph: JoinedGraph, name: str) -> Iterator[tuple[JoinedGraph, str]]:
    """The functions that a name leads into, with the rest of the name."""
    for n, properties in enumerate(graph.properties):
        library, prefix = graph.functions[int(graph.place[n])], f"{graph.names[n]}/"
        if name.startswith(prefix) and calls_functions(properties, library):
            for function in called_by(properties, library):
                try:
                    body = body_graph(body_of(library, function, gradient=calls_gradient(properties)))
                except PartitaError:
                    continue  # a function that does not fit is reported where it is called
                yield JoinedGraph({"": body}), name.removeprefix(prefix)
