"""One lowering in place: visits the nodes of a graph, new ones too, and replaces those that are to be lowered.

    w = While(0, x)        Enter, Merge, Switch ..., and calls of its condition and body
    w/body = body(i)       visited later, as it is new: the nodes of the body, inlined

`lower_functional` decides which nodes are to be lowered, and imports this module for the first graph that has any.
"""

from __future__ import annotations

from collections.abc import Callable

from ..columns import SINK_ID
from ..functions.body import instantiate_call
from ..graph import Graph
from ..library.calls import called_function
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import Calls
from .conditionals import lower_case, lower_if
from .expansion import Expansion
from .inline import can_inline, inline_call
from .while_loops import lower_while

_LOWERINGS = {
    Calls.IF: lower_if,
    Calls.CASE: lower_case,
    Calls.WHILE: lower_while,
}


class Lowering:
    """One lowering in place."""

    def __init__(
        self,
        graph: Graph,
        is_due: Callable[[NodeProperties], bool],
        is_wanted: Callable[[int], bool],
        *,
        fetchable: bool,
    ) -> None:
        """Replaces the nodes for which `is_wanted` (by id) and `is_due` (by properties) hold.

        With `fetchable` every name that could be fetched still can be.
        """
        self.graph = graph
        self.decide = is_due
        self.is_wanted = is_wanted
        self.fetchable = fetchable
        self.due: dict[NodeProperties, bool] = {}
        self.inside: dict[int, frozenset[str]] = {}  # recursive functions that a node was inlined from, by its id

    def run(self) -> None:
        """Visits every node, new ones too."""
        node_id = SINK_ID
        while (node_id := node_id + 1) < self.graph.num_node_ids:
            properties = self.graph.shared_properties()[node_id]
            if properties is not None and self._is_due(properties) and self.is_wanted(node_id):
                self._replace(Node(self.graph, node_id))

    def _is_due(self, properties: NodeProperties) -> bool:
        if properties not in self.due:
            self.due[properties] = self.decide(properties)
        return self.due[properties]

    def _replace(self, node: Node) -> None:
        inside = self.inside.get(node.id, frozenset())
        calls = node.properties.op_def.record.calls
        lower = None if calls is None else _LOWERINGS.get(calls)
        if lower is not None:
            new_calls = lower(Expansion(self.graph, node, fetchable=self.fetchable))
        else:
            function = called_function(node.properties, self.graph.functions)
            if function is None or function.name not in self.graph.functions or function.name in inside:
                return
            body = instantiate_call(self.graph.functions, function)
            if not can_inline(node, body):
                return
            new_calls = inline_call(self.graph, node, body, fetchable=self.fetchable)
            if self.graph.functions.may_call_itself(function.name):
                inside |= {function.name}
        if inside:
            self.inside.update((new.id, inside) for new in new_calls if self._is_due(new.properties))
