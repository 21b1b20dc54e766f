"""Nodes that cannot be timed yet are an error, because the time of one op would be far too small for them.

functions    an op that calls functions, or is a function of the library: one node stands for a graph of any size
loops        the nodes of a frame: the number of iterations depends on values
collectives  no edge of the graph shows how many bytes they move, and over which links
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import UnimplementedError
from ...graph.analysis.joined import JoinedGraph
from ...graph.library.calls import called_function, functions_named_by, is_call
from ...graph.library.function_library import FunctionLibrary
from ...graph.ops.properties import NodeProperties
from ...graph.ops.record import NodeClass
from ...graph.passes.inline import forbids_inlining
from ...graph.passes.lower_functional import LOWER_ATTR, is_functional

_OF_LOOPS = (NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION, NodeClass.LOOP_COND)
_FEED_INSTEAD = "feed what leaves it, with its shape, to time the rest"
_LISTED = 3


def check_modelled(graph: JoinedGraph, runs: Callable[[int], bool]) -> None:
    """Raises UnimplementedError for the first node that runs and cannot be timed."""
    kinds = dict(zip(graph.ops, graph.kinds, strict=True))
    refused = {op for op, kind in kinds.items() if kind.op_def.takes_functions or kind.op_def.is_collective}
    refused.update(op for op in kinds if any(op in library for library in graph.functions))
    by_kind = [op in refused or c in _OF_LOOPS for op, c in zip(graph.ops, graph.classes, strict=True)]
    for n in np.flatnonzero(np.array(by_kind, np.bool_)[graph.kind_of]).tolist():
        if runs(n):
            raise UnimplementedError(_why(graph, n), node=graph.names[n], op=graph.op(n))


def _why(graph: JoinedGraph, n: int) -> str:
    node, library = graph.properties[n], graph.functions[graph.place[n]]
    if graph.node_class(n) in _OF_LOOPS:
        frame = f" {node.attrs['frame_name'].decode()!r}" if graph.node_class(n) is NodeClass.ENTER else ""
        return f"the clock does not model loops yet, such as{frame or ' this one'}; {_FEED_INSTEAD}"
    if node.op_def.takes_functions or node.op in library:
        return _why_function(node, library)
    return f"the clock does not model collectives yet, nor the bytes that this one exchanges; {_FEED_INSTEAD}"


def _why_function(node: NodeProperties, library: FunctionLibrary) -> str:
    named = [repr(name) for name in functions_named_by(node) if name != node.op or name in library]
    listed = ", ".join(named[:_LISTED]) + (" and others" if len(named) > _LISTED else "")
    begin = f"the clock does not look into functions: {listed or 'those of this node'} would take the time of one op"
    return f"{begin}; {_what_helps(node, library)}"


def _what_helps(node: NodeProperties, library: FunctionLibrary) -> str:
    if not is_functional(node, library):
        return _FEED_INSTEAD
    if not is_call(node, library):
        return (
            f"a conditional is lowered if its attr {LOWER_ATTR} says so; loops are not modelled either: {_FEED_INSTEAD}"
        )
    function = called_function(node, library)
    if function is None:
        return f"partita.graph.gradients adds the nodes of a gradient to the graph itself; or {_FEED_INSTEAD}"
    definition = library.find(function.name)
    if definition is not None and forbids_inlining(definition.attr):
        return f"it says that it must not be inlined; {_FEED_INSTEAD}"
    if function.name in library.closure(library.needs(function.name)):
        return f"it calls itself, how often depends on values; {_FEED_INSTEAD}"
    return "inline calls first: --inline on the command line, inline=True of partita.devices.cut"
