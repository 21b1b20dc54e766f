"""The bodies of functions as joined graphs: one for all who ask for the columns of a body, kept with the body.

body of f       x -> negated -> result
joined_body     the columns of these nodes, wherever they run
body_on         the same columns, on the device that all of them run on
"""

from __future__ import annotations

from collections.abc import Mapping

from ..functions.body import FunctionBody
from ..graph import Graph
from .joined import JoinedGraph


def joined_body(body: FunctionBody) -> JoinedGraph:
    """The columns of a body; not to be changed."""
    joined = body.kept.get(JoinedGraph)
    if not isinstance(joined, JoinedGraph):
        joined = body.kept[JoinedGraph] = JoinedGraph({"": body.graph})
    return joined


def body_on(body: FunctionBody, parts: Mapping[str, Graph]) -> JoinedGraph:
    """The columns of a body that was placed and cut into these parts, by device.

    A body that stayed whole shares its columns with `joined_body`: most are a few nodes on one device.
    """
    if len(parts) == 1:
        device, graph = next(iter(parts.items()))
        if graph.has_columns_of(body.graph):
            return joined_body(body).on(device, graph)
    return JoinedGraph(parts)


def stayed_whole(body: FunctionBody, joined: JoinedGraph) -> bool:
    """Whether these are the columns of all nodes of a body, in its order."""
    return joined.input_src is joined_body(body).input_src
