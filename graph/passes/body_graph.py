"""The graph that one call of a function runs: the body, pruned and lowered.

In: a `FunctionBody`, whose graph stays as it is. Out: its nodes that lead to a result or have state, whether the caller
uses the results or not, with conditionals and loops lowered that ask for it. Node ids are those of the body if nothing
was lowered. A call in it has no more outputs than its function returns.
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
    is_stateful = graph.flags(lambda kind: kind.op_def.is_stateful)
    return [graph.node(number) for number in np.flatnonzero(is_stateful).tolist() if number > SINK_ID]
