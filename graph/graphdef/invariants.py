"""The rules of the raw stage: a graph that has just been imported from a GraphDef.

Ids are dense, and nodes are numbered from 2 in creation order, so only an edge from a NextIteration to a Merge goes
from a higher id to a lower. No control edge is doubled. No node is placed, unless the GraphDef is that of a partition:
then all are. A node keeps the strings of its inputs only as long as they name its edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..columns import SINK_ID
from ..exporter import connected_inputs
from ..graph import Graph
from ..invariants import Stage, check_loose_ends, check_structure, repeated
from ..ops.record import NodeClass


def check_raw(graph: Graph) -> None:
    """Raises InternalError for the first rule of the raw stage that does not hold; ports may be open."""
    stage = Stage("raw", graph)
    check_structure(stage, types_fit=True)
    check_loose_ends(stage)
    if graph.num_nodes < graph.num_node_ids or graph.num_edges < graph.num_edge_ids:
        raise stage.broken("ids have no holes", f"{graph!r} has {graph.num_node_ids} and {graph.num_edge_ids} ids")
    edges = stage.edges
    is_next = graph.flags(lambda kind: kind.op_def.record.node_class is NodeClass.NEXT_ITERATION)
    is_merge = graph.flags(lambda kind: kind.op_def.record.node_class is NodeClass.MERGE)
    inner = (edges.src > SINK_ID) & (edges.dst > SINK_ID)
    closes = is_next[edges.src] & is_merge[edges.dst]
    stage.no_edge("inputs are made before what reads them", inner & (edges.src >= edges.dst) & ~closes)
    twice = repeated(inner & ~stage.is_data, edges.src, edges.dst)
    stage.no_edge("a node waits for another once", twice, lambda _at: "is there twice")
    _check_input_strings(stage)
    placed = graph.assigned_device_indices()
    some_are_placed = bool(placed[SINK_ID + 1 :].any())
    stage.no_node(
        "all nodes are placed or none is",
        (placed == 0) & some_are_placed & (np.arange(len(placed)) > SINK_ID),
        lambda _node: "is not placed, others are",
    )


def _check_input_strings(stage: Stage) -> None:
    """Input strings that a node keeps name its edges: data inputs by port, then control inputs in any order."""
    graph = stage.graph
    for node in stage.graph.node_ids():
        strings = graph.given_inputs(node)
        if strings is not None and _by_port(strings) != _by_port(connected_inputs(graph, node)):
            raise stage.broken(
                "input strings agree with the edges",
                f"{graph.node(node)!r} was given {list(strings)}, has {connected_inputs(graph, node)}",
                node,
            )


def _by_port(strings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Data inputs by port, control inputs by name; "x:0" is written "x"."""
    data = [text.removesuffix(":0") for text in strings if not text.startswith("^")]
    return data, sorted(text for text in strings if text.startswith("^"))
