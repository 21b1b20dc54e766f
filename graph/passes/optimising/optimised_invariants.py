"""The rules of the optimised stage: a partition after the passes of its optimisation level.

Every stateful node, and so every transfer, argument and result, is there as it was. A node that was there before has
its op, its types and its device. A new node is a Const, an Identity or a NoOp, on a device that the partition had. Ids
are dense.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...analysis.transfers import transfer_of
from ...columns import SINK_ID
from ...graph import Graph
from ...invariants import Stage, check_loose_ends, check_structure, is_fed_or_received
from ...node import Node
from ...ops.record import NodeClass

_NEW = frozenset({NodeClass.CONSTANT, NodeClass.IDENTITY, NodeClass.NO_OP})


def check_optimised(graph: Graph, original: Graph) -> None:
    """Raises InternalError for the first broken rule of the optimised stage; `original` is the graph before it."""
    if graph is original:
        return
    stage = Stage("optimised", graph)
    check_structure(stage, original=original, types_fit=True, is_fed=partial(is_fed_or_received, graph))
    check_loose_ends(stage)
    if graph.num_nodes < graph.num_node_ids:
        raise stage.broken("ids have no holes", f"{graph!r} has {graph.num_node_ids} ids")
    _check_stateful(stage, original)
    devices = set(np.array(original.device_names())[original.assigned_device_indices()[original.live_nodes()]].tolist())
    for node in graph.op_nodes():
        before = original.find_node(node.name)
        if before is None:
            _check_new(stage, node, devices)
        elif not _is_same(node, before):
            raise stage.broken("a node that stays is the same", f"{node!r} was {before!r}", node.id)


def _check_stateful(stage: Stage, original: Graph) -> None:
    """Nodes with state stay, also if nothing reads them: reading a queue, say, changes it."""
    is_stateful = original.flags(lambda kind: kind.op_def.is_stateful)
    for number in np.flatnonzero(is_stateful[SINK_ID + 1 :]).tolist():
        name = original.node_name(number + SINK_ID + 1)
        if stage.graph.find_id(name) is None:
            raise stage.broken("a stateful node stays", f"{name!r} is gone")


def _check_new(stage: Stage, node: Node, devices: set[str]) -> None:
    if node.op_def.record.node_class not in _NEW:
        raise stage.broken("a new node computes nothing", f"{node!r} does", node.id)
    if node.assigned_device not in devices:
        rule = "a new node is on a device of the partition"
        raise stage.broken(rule, f"{node!r} is on {node.assigned_device!r}", node.id)


def _is_same(node: Node, before: Node) -> bool:
    """Whether a node has op, types and device that it had, and a transfer everything else too."""
    if node.properties is not before.properties and node.op_def.record.is_transfer:
        return transfer_of(node.properties) == transfer_of(before.properties)
    facts, facts_before = (
        (n.op, n.input_types, n.output_types, n.assigned_device, n.requested_device) for n in (node, before)
    )
    return facts == facts_before
