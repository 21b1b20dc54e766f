"""Lowers conditionals, loops and calls of functions to simpler nodes of the same graph, before placement.

Every If, Case and While with the attr `_lower_using_switch_merge` becomes Switch, Merge, Enter and Exit nodes with its
functions inlined; with `inline_calls` all other calls are inlined too. Every name that could be fetched still can be,
unless the graph is the body of a function (it has `_Arg` or `_Retval` nodes). A recursive call stays a call.

Nodes are visited by ascending id, new ones included, so that names are numbered as TensorFlow numbers them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..checking import are_checked
from ..columns import SINK_ID
from ..functions.body import instantiate_call
from ..graph import Graph
from ..library.calls import MULTI_DEVICE_ATTR, called_function, flag, function_attr, is_call, is_partitioned_call
from ..library.function_library import FunctionLibrary
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import Calls, NodeClass
from .conditionals import lower_case, lower_if
from .inline import can_inline, inline_call
from .while_loops import lower_while

LOWER_ATTR = "_lower_using_switch_merge"
_LOWERINGS = {
    Calls.IF: lower_if,
    Calls.CASE: lower_case,
    Calls.WHILE: lower_while,
}
_ENDS = (NodeClass.ARG, NodeClass.RETVAL)


@collector_paused()
def lower_functional(graph: Graph, *, inline_calls: bool = False, control_flow: bool = True) -> Graph:
    """The graph with its conditionals and loops (`control_flow`) lowered and, with `inline_calls`, its calls inlined.

    Raises the errors of instantiating functions, and InvalidArgumentError for a conditional or loop whose functions do
    not fit and, unless the graph is a body itself, for the call of an unknown function. A call that does not fit its
    function stays, and fails when it runs.
    """
    library = graph.functions

    def is_due(kind: NodeProperties) -> bool:
        return _is_due(kind, library, inline_calls) and (control_flow or kind.op_def.record.calls not in _LOWERINGS)

    original, kinds = graph, _kinds(graph)
    fetchable = not any(kind.op_def.record.node_class in _ENDS for kind in kinds)
    if any(map(is_due, kinds)):
        graph = graph.clone()
        _Lowering(graph, is_due).run()
    if fetchable:
        _check_calls(graph)
    if are_checked():
        from .lowered_invariants import check_lowered

        check_lowered(graph, original, is_due, lambda kind: kind.op_def.record.calls in _LOWERINGS, fetchable=fetchable)
    return graph


def expand(graph: Graph, nodes: Collection[int]) -> None:
    """Replaces conditionals, loops and calls among `nodes` in place, and those in the functions that are inlined.

    Unlike `lower_functional` it ignores whether a node asks to be lowered. Raises as that.
    """
    old = graph.num_node_ids
    _Lowering(graph, lambda kind: is_functional(kind, graph.functions), lambda node: node >= old or node in nodes).run()


def is_functional(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node is a conditional, a loop or a call of a function."""
    return node.op_def.record.calls in _LOWERINGS or is_call(node, library)


def _kinds(graph: Graph) -> set[NodeProperties]:
    return {properties for properties in graph.shared_properties() if properties is not None}


def _is_due(node: NodeProperties, library: FunctionLibrary, inline_calls: bool) -> bool:
    """Whether a node is to be replaced."""
    if node.op_def.record.calls in _LOWERINGS:
        return flag(node, LOWER_ATTR)
    return is_call(node, library) and (inline_calls or flag(node, MULTI_DEVICE_ATTR))


def _check_calls(graph: Graph) -> None:
    """Raises InvalidArgumentError for a call of an unknown function; in bodies such a call fails when it runs."""
    for node in _kinds(graph):
        if is_partitioned_call(node) and (name := function_attr(node, "f").name) not in graph.functions:
            raise InvalidArgumentError(
                f'Failed to find function "{name}" in function library: it has '
                f"{len(graph.functions)} functions; add the missing one",
                op=node.op,
            )


class _Lowering:
    """One lowering in place."""

    def __init__(
        self,
        graph: Graph,
        is_due: Callable[[NodeProperties], bool],
        is_wanted: Callable[[int], bool] = lambda _node: True,
    ) -> None:
        """Replaces the nodes for which `is_wanted` (by id) and `is_due` (by properties) hold."""
        self.graph = graph
        self.decide = is_due
        self.is_wanted = is_wanted
        self.fetchable = not any(kind.op_def.record.node_class in _ENDS for kind in _kinds(graph))
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
            new_calls = lower(self.graph, node, fetchable=self.fetchable)
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
