"""A graph and an addition to it as one GraphDef, as a session makes it whose graph is extended.

Flows in: the graph of a session, a GraphDef that may read from its nodes. Flows out: one GraphDef to import. Always
holds: nothing given is changed; what the graph has keeps its order, and its devices, so what lives on them is found
again.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ..graph import Graph
from ..protos import GraphDef
from .sources import GraphSource, parse_graph_def


def extended(graph: Graph, addition: GraphSource) -> GraphDef:
    """The nodes and functions of `graph`, then those of `addition`, whose versions count if it has any.

    Raises InvalidArgumentError for a node whose name is taken, and for a function that is defined otherwise.
    """
    added = parse_graph_def(addition)
    for node in added.node:
        if graph.find_node(node.name) is not None:
            raise InvalidArgumentError(
                f"GraphDef argument to Extend includes node '{node.name}', which was created by a previous call to "
                "Create or Extend in this session."
            )
    joined = graph.to_graph_def()
    joined.node.extend(added.node)
    joined.library.CopyFrom(graph.functions.merged(added.library).message)
    if added.HasField("versions"):
        joined.versions.CopyFrom(added.versions)
    return joined
