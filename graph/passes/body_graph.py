"""The graph that one call of a function runs: the body, pruned and lowered.

Results and stateful nodes are kept, whether the results are used or not; conditionals and loops that ask for lowering
are lowered. Node ids are those of the body if nothing was lowered, and
every call declares what its function gives.
"""

from __future__ import annotations

import numpy as np

from ..columns import SINK_ID
from ..functions.body import FunctionBody
from ..graph import Graph
from ..node import Node
from .client_graph import prune_for_reverse_reachability
from .lower_functional import lower_functional
from .surplus_outputs import drop_surplus_outputs


def body_graph(body: FunctionBody) -> Graph:
    """The graph that a call runs: results, stateful nodes and their ancestors; raises as `lower_functional`."""
    graph = lower_functional(body.graph).clone()
    names = [node.name for node in (*body.results, *body.control_results)]
    ends = [node for name in names if (node := graph.find_node(name)) is not None]
    prune_for_reverse_reachability(graph, [*ends, *stateful_nodes(graph)])
    drop_surplus_outputs(graph)
    graph.fix_source_and_sink_edges()
    return graph


def stateful_nodes(graph: Graph) -> list[Node]:
    """The nodes of stateful ops, by ascending id."""
    kinds, kind_of = graph.distinct_properties()
    is_stateful = np.array([*(kind.op_def.is_stateful for kind in kinds), False])  # False for removed nodes: kind -1
    return [graph.node(number) for number in np.flatnonzero(is_stateful[kind_of]).tolist() if number > SINK_ID]
