"""The rules of the lowered stage: a graph whose conditionals, loops and calls have been lowered.

No node that was to be lowered is left, every fetchable name still is, with the same types, and frames that were well
formed still are. A call may stay for three reasons: its function is not in the library, may call itself, or either does
not fit the call or forbids inlining.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import PartitaError
from ..analysis.control_flow import build_control_flow_info, has_frames
from ..dtypes import base_type
from ..functions.body import instantiate_call
from ..graph import Graph
from ..invariants import Stage, check_structure
from ..library.calls import called_function
from ..node import Node
from ..ops.properties import NodeProperties
from ..ops.record import Calls
from .inline import can_inline
from .lower_functional import LOWERED


def check_lowered(graph: Graph, original: Graph, is_due: Callable[[NodeProperties], bool], *, fetchable: bool) -> None:
    """Raises InternalError for the first broken rule of the lowered stage.

    `original` is the graph before. `is_due` tells by its properties whether a node was to be replaced. `fetchable`:
    every name must be kept.
    """
    if graph is original:
        return
    stage = Stage("lowered", graph)
    check_structure(stage, original=original)
    _check_nothing_is_due(stage, is_due)
    if fetchable:
        _check_fetchable(stage, original)
    mistake = _mistake_in_frames(graph) if has_frames(graph) and _mistake_in_frames(original) is None else None
    if mistake is not None:
        raise stage.broken("frames that were well formed stay so", str(mistake)) from mistake


def _check_nothing_is_due(stage: Stage, is_due: Callable[[NodeProperties], bool]) -> None:
    """A call may stay; conditionals and loops must not."""
    rule = "what was to be lowered is"
    kinds, kind_of = stage.graph.distinct_properties()
    due_kinds = [number for number, kind in enumerate(kinds) if is_due(kind)]
    for number in due_kinds:
        node = stage.graph.node(int((kind_of == number).argmax()))
        if kinds[number].op_def.record.calls in LOWERED or not _may_stay(node):
            raise stage.broken(rule, f"{node!r} is still there", node.id)


def _may_stay(call: Node) -> bool:
    library = call.graph.functions
    function = called_function(call.properties, library)
    if function is None or function.name not in library or library.may_call_itself(function.name):
        return True
    return not can_inline(call, instantiate_call(library, function))


def _check_fetchable(stage: Stage, original: Graph) -> None:
    for before in original.op_nodes():
        after = stage.graph.find_node(before.name)
        if after is None:
            raise stage.broken("every name is still there", f"{before!r} is not")
        if not _has_outputs_of(after, before):
            rule = "what could be fetched still can be"
            raise stage.broken(rule, f"{before!r} had {before.output_types}, has {after.output_types}", after.id)


def _has_outputs_of(node: Node, before: Node) -> bool:
    """Whether a node has its earlier outputs: references may have become values, and there may be more outputs.

    There are fewer where the branches of a conditional give fewer than it declares, as in TensorFlow.
    """
    types = tuple(map(base_type, before.output_types))
    if before.properties.op_def.record.calls in (Calls.IF, Calls.CASE):
        types = types[: node.num_outputs]
    return node.output_types == before.output_types or node.output_types[: len(types)] == types


def _mistake_in_frames(graph: Graph) -> PartitaError | None:
    """The error of the graph's loops, or None; lowering may have left edges of source and sink out."""
    if not has_frames(graph):
        return None
    whole = graph.clone()
    whole.fix_source_and_sink_edges()
    try:
        build_control_flow_info(whole)
    except PartitaError as error:
        return error
    return None
