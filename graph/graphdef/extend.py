"""The graph of a session and an addition to it as one GraphDef, for `Session.extend`.

Nodes of the graph keep their order and their devices, so that variables stay where they are.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ..graph import Graph
from ..protos import GraphDef
from .sources import GraphSource, parse_graph_def


def extended(graph: Graph, addition: GraphSource) -> GraphDef:
    """The nodes and functions of `graph`, then those of `addition`, whose versions are used if it has any.

    Raises InvalidArgumentError for a node name that the graph has, and for a function with a different definition.
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
