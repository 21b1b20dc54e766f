"""What the graph of a request or of a call must keep, beyond what importing it has checked.

Flows in: a pruned graph, so that only nodes that are going to run are looked at: as in TensorFlow, others do no harm.
Flows out: nothing, or the error for the user whose graph it is.
"""

from __future__ import annotations

import numpy as np

from ...errors import InvalidArgumentError
from ...graph.columns import CONTROL_SLOT
from ...graph.dtypes import REF_OFFSET, dtype_name, is_ref
from ...graph.graph import Graph
from ...graph.partition import TransferProperties, transfer_of
from ...graph.port_table import PortTable
from ...graph.validate import check_kinds
from ...rendezvous.key import Key


def check_runnable(graph: Graph) -> None:
    """Raises InvalidArgumentError for the first of these that is found.

    An edge between ports of different types, such as a feed where a node is to change a variable; an attr that its op
    does not allow; a `_Send` or `_Recv` of the user's whose attrs spell no key.
    """
    _check_input_types(graph)
    check_kinds(graph)
    _check_keys(graph)


def _check_input_types(graph: Graph) -> None:
    """Refuses an edge between ports of different types.

    The importer has checked the edges it made. Others come from functions that do not fit what calls them, and from
    feeds, which are values even where a node wants the reference of a variable: elsewhere nothing can be wrong.
    """
    kinds, kind_of = graph.distinct_properties()
    if not len(graph.functions) and not any(is_ref(dtype) for kind in kinds for dtype in kind.input_types):
        return
    edges = graph.edge_arrays()
    data = edges.dst_input > CONTROL_SLOT
    src, output, dst, port = (column[data] for column in (edges.src, edges.src_output, edges.dst, edges.dst_input))
    given = PortTable([kind.output_types for kind in kinds]).at(kind_of[src], output)
    wanted = PortTable([kind.input_types for kind in kinds]).at(kind_of[dst], port)
    fits = (given == wanted) | (given - REF_OFFSET == wanted)  # a reference may be read by value
    for at in np.flatnonzero(~fits).tolist():
        source, node = graph.node(int(src[at])), graph.node(int(dst[at]))
        raise InvalidArgumentError(
            f"Input {port[at]} of node {node.name} was passed {dtype_name(int(given[at]))} from "
            f"{source.name}:{output[at]} incompatible with expected {dtype_name(int(wanted[at]))}.",
            node=node.name,
            op=node.op,
        )


def _check_keys(graph: Graph) -> None:
    """Refuses a transfer that came with the graph and whose attrs spell no key."""
    for kind in graph.distinct_properties()[0]:
        if kind.op_def.record.is_transfer and not isinstance(kind, TransferProperties):
            try:
                transfer = transfer_of(kind)
                Key(*transfer.route, transfer.tensor_name)
            except InvalidArgumentError as error:
                node = next(node.name for node in graph.op_nodes() if node.properties is kind)
                raise error.located(node=node, op=kind.op) from None
