"""Conditionals, loops and calls of functions become nodes of the graph that has them.

Flows in: a graph as imported, not yet placed. Flows out: the same graph, or a new one in which every If, Case and While
that says so (attr `_lower_using_switch_merge`) is made of Switch, Merge, Enter and Exit nodes, with its branches, or
condition and body, inlined; with `inline_calls` all other calls of functions are inlined too. Always holds: the lowered
graph computes what the graph computes; every name that could be fetched still can be, unless the graph is the body of a
function (it has `_Arg` or `_Retval` nodes); a function that is being put into itself stays a call: it ends, if ever,
when it runs.

Nodes are visited by ascending id, those made on the way too, so that names are numbered as TensorFlow numbers them.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ..collector import collector_paused
from ..columns import SINK_ID
from ..functions.body import instantiate_call
from ..functions.calls import MULTI_DEVICE_ATTR, called_function, flag, is_call, is_partitioned_call
from ..functions.library import FunctionLibrary
from ..graph import Graph
from ..node import Node
from ..properties import NodeProperties
from .conditionals import lower_case, lower_if
from .inline import can_inline, inline_call
from .while_loops import lower_while

LOWER_ATTR = "_lower_using_switch_merge"
_LOWERINGS = {
    "If": lower_if,
    "StatelessIf": lower_if,
    "Case": lower_case,
    "StatelessCase": lower_case,
    "While": lower_while,
    "StatelessWhile": lower_while,
}
_ENDS = frozenset({"_Arg", "_Retval"})


@collector_paused()
def lower_functional(graph: Graph, *, inline_calls: bool = False) -> Graph:
    """The graph with its conditionals and loops lowered and, with `inline_calls`, its calls inlined.

    Raises what instantiating functions raises, and InvalidArgumentError for a conditional or loop whose functions do
    not fit it and for the call of a function that the library lacks. A call that does not fit stays as it is, to fail
    when it runs.
    """
    kinds = {properties for properties in graph.shared_properties() if properties is not None}
    if any(_is_due(kind, graph.functions, inline_calls) for kind in kinds):
        graph = graph.clone()
        _Lowering(graph, inline_calls, fetchable=not any(kind.op in _ENDS for kind in kinds)).run()
    _check_calls(graph)
    return graph


def _is_due(node: NodeProperties, library: FunctionLibrary, inline_calls: bool) -> bool:
    """Whether a node is to be replaced."""
    if node.op in _LOWERINGS:
        return flag(node, LOWER_ATTR)
    return is_call(node, library) and (inline_calls or flag(node, MULTI_DEVICE_ATTR))


def _check_calls(graph: Graph) -> None:
    for node in {properties for properties in graph.shared_properties() if properties is not None}:
        if is_partitioned_call(node) and node.attrs["f"].name not in graph.functions:
            raise InvalidArgumentError(
                f'Failed to find function "{node.attrs["f"].name}" in function library: it has '
                f"{len(graph.functions)} functions; add the missing one",
                op=node.op,
            )


class _Lowering:
    """One lowering, in place."""

    def __init__(self, graph: Graph, inline_calls: bool, *, fetchable: bool) -> None:
        self.graph = graph
        self.inline_calls = inline_calls
        self.fetchable = fetchable
        self.due: dict[NodeProperties, bool] = {}
        self.inside: dict[int, frozenset[str]] = {}  # functions that a node is from, by its id

    def run(self) -> None:
        """Visits every node, new ones too."""
        node_id = SINK_ID
        while (node_id := node_id + 1) < self.graph.num_node_ids:
            properties = self.graph.shared_properties()[node_id]
            if properties is not None and self._is_due(properties):
                self._replace(Node(self.graph, node_id))

    def _is_due(self, properties: NodeProperties) -> bool:
        if properties not in self.due:
            self.due[properties] = _is_due(properties, self.graph.functions, self.inline_calls)
        return self.due[properties]

    def _replace(self, node: Node) -> None:
        inside = self.inside.get(node.id, frozenset())
        lower = _LOWERINGS.get(node.op)
        if lower is not None:
            made = lower(self.graph, node, fetchable=self.fetchable)
        else:
            function = called_function(node.properties, self.graph.functions)
            if function is None or function.name not in self.graph.functions or function.name in inside:
                return
            body = instantiate_call(self.graph.functions, function)
            if not can_inline(node, body):
                return
            made = inline_call(self.graph, node, body, fetchable=self.fetchable)
            inside |= {function.name}
        self.inside.update((new.id, inside) for new in made if self._is_due(new.properties))
