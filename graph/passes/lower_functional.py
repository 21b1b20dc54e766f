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
from ..graph import Graph
from ..library.calls import MULTI_DEVICE_ATTR, flag, function_attr, is_call, is_partitioned_call
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties
from ..ops.record import Calls, NodeClass

LOWER_ATTR = "_lower_using_switch_merge"
LOWERED = (Calls.IF, Calls.CASE, Calls.WHILE)
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
        return _is_due(kind, library, inline_calls) and (control_flow or kind.op_def.record.calls not in LOWERED)

    original, kinds = graph, _kinds(graph)
    fetchable = _is_fetchable(kinds)
    if any(map(is_due, kinds)):
        graph = graph.clone()
        _lower(graph, is_due)
    if fetchable:
        _check_calls(graph)
    if are_checked():
        from .lowered_invariants import check_lowered

        check_lowered(graph, original, is_due, fetchable=fetchable)
    return graph


def expand(graph: Graph, nodes: Collection[int]) -> None:
    """Replaces conditionals, loops and calls among `nodes` in place, and those in the functions that are inlined.

    Unlike `lower_functional` it ignores whether a node asks to be lowered. Raises as that.
    """
    old = graph.num_node_ids
    _lower(graph, lambda kind: is_functional(kind, graph.functions), lambda node: node >= old or node in nodes)


def is_functional(node: NodeProperties, library: FunctionLibrary) -> bool:
    """Whether a node is a conditional, a loop or a call of a function."""
    return node.op_def.record.calls in LOWERED or is_call(node, library)


def _lower(
    graph: Graph, is_due: Callable[[NodeProperties], bool], is_wanted: Callable[[int], bool] = lambda _node: True
) -> None:
    from .lowering import Lowering  # loads all lowerings, and most graphs have nothing to lower

    Lowering(graph, is_due, is_wanted, fetchable=_is_fetchable(_kinds(graph))).run()


def _is_fetchable(kinds: Collection[NodeProperties]) -> bool:
    """Whether nodes of these kinds are a graph, whose tensors can be fetched, and not the body of a function."""
    return not any(kind.op_def.record.node_class in _ENDS for kind in kinds)


def _kinds(graph: Graph) -> set[NodeProperties]:
    return {properties for properties in graph.shared_properties() if properties is not None}


def _is_due(node: NodeProperties, library: FunctionLibrary, inline_calls: bool) -> bool:
    """Whether a node is to be replaced."""
    if node.op_def.record.calls in LOWERED:
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
