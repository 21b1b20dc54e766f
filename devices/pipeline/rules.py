"""Errors in the user's graph that are checked before it is cut, beyond those that importing finds.

The rules look at a pruned graph, so nodes that do not run are not checked, as in TensorFlow.
"""

from __future__ import annotations

import numpy as np

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.analysis.transfers import TransferProperties, transfer_of
from ...graph.columns import CONTROL_SLOT
from ...graph.dtypes import REF_OFFSET, dtype_name, is_ref
from ...graph.graph import Graph
from ...graph.ops.record import NodeClass
from ...graph.ops.summaries import node_for_error
from ...graph.port_table import PortTable
from ...graph.validate import check_kinds
from ...rendezvous.key import Key


def check_runnable(graph: Graph) -> None:
    """Raises InvalidArgumentError for the first node that breaks a rule.

    The ports of every edge have the same type (a feed cannot replace the reference that an assignment needs); every
    attr has a value that its op allows; the attrs of the user's own `_Send` and `_Recv` nodes make a valid key. An
    Enter without the name of its frame is a NotFoundError: TensorFlow asks for that before it checks attrs.
    """
    _check_input_types(graph)
    _check_frames(graph)
    check_kinds(graph)
    _check_keys(graph)


def _check_frames(graph: Graph) -> None:
    kinds, kind_of = graph.distinct_properties()
    for number, kind in enumerate(kinds):
        if kind.op_def.record.node_class is NodeClass.ENTER and "frame_name" not in kind.attrs:
            name = graph.node_name(int((kind_of == number).argmax()))
            raise NotFoundError(f"No attr named 'frame_name' in NodeDef: {node_for_error(name)}", node=name, op=kind.op)


def _check_input_types(graph: Graph) -> None:
    """Refuses an edge between ports of different types.

    The importer has checked the edges that it made. New edges come only from inlined functions and from feeds (a feed
    is a value, also where the node needs the reference of a variable), so other graphs are not looked at.
    """
    kinds, kind_of = graph.distinct_properties()
    if not len(graph.functions) and not any(is_ref(dtype) for kind in kinds for dtype in kind.input_types):
        return
    edges = graph.edge_arrays()
    data = edges.dst_input > CONTROL_SLOT
    src, output, dst, port = (column[data] for column in (edges.src, edges.src_output, edges.dst, edges.dst_input))
    types_given = PortTable([kind.output_types for kind in kinds]).at(kind_of[src], output)
    types_expected = PortTable([kind.input_types for kind in kinds]).at(kind_of[dst], port)
    # A reference may be read by value.
    fits = (types_given == types_expected) | (types_given - REF_OFFSET == types_expected)
    for at in np.flatnonzero(~fits).tolist():
        source, node = graph.node(int(src[at])), graph.node(int(dst[at]))
        raise InvalidArgumentError(
            f"Input {port[at]} of node {node.name} was passed {dtype_name(int(types_given[at]))} from "
            f"{source.name}:{output[at]} incompatible with expected {dtype_name(int(types_expected[at]))}.",
            node=node.name,
            op=node.op,
        )


def _check_keys(graph: Graph) -> None:
    """Refuses a `_Send` or `_Recv` of the user's graph whose attrs make no valid key."""
    for kind in graph.distinct_properties()[0]:
        if kind.op_def.record.is_transfer and not isinstance(kind, TransferProperties):
            try:
                transfer = transfer_of(kind)
                Key(*transfer.route, transfer.tensor_name)
            except InvalidArgumentError as error:
                node = next(node.name for node in graph.op_nodes() if node.properties is kind)
                raise error.located(node=node, op=kind.op) from None
