"""The rules of a placed graph, checked in tests.

Every node has a device of the run, of a kind with a kernel for it. Nodes that a reference or a resource handle joins
are on one device. Without soft placement a node that is in no group is on a device that it asked for, and the nodes of
a `_class` group are on one device.
"""

from __future__ import annotations

import numpy as np

from ...graph.arrays import Flags
from ...graph.columns import SINK_ID, Ids
from ...graph.device_name import find_full_name, is_specification
from ...graph.graph import Graph
from ...graph.invariants import Stage, check_structure
from ...graph.passes.isolate_calls import calls_giving_resources
from .candidates import DeviceSet
from .colocation import needs_source_device
from .node_kinds import kinds_of


def check_placed(graph: Graph, settled: Ids, devices: DeviceSet, *, soft: bool) -> None:
    """Raises InternalError for the first rule of the placed stage that does not hold.

    `settled` is the column of assigned devices before placement, `soft` says whether placement was soft.
    """
    stage = Stage("placed", graph)
    check_structure(stage)
    assigned, names = graph.assigned_device_indices(), graph.device_names()
    nodes = stage.live.copy()
    nodes[: SINK_ID + 1] = False
    stage.no_node("every node has a device", nodes & (assigned == 0), lambda _node: "has none")
    known = np.array([bool(name) and devices.exists(name) for name in names])
    stage.no_node(
        "a node is on a device that there is", nodes & ~known[assigned], lambda node: f"is on {names[assigned[node]]!r}"
    )
    moved = (settled > 0) & (settled != assigned)
    stage.no_node("a node that has a device stays there", moved, lambda node: f"was on {names[settled[node]]!r}")
    joined = _check_joined(stage)
    has_class = _check_classes(stage, devices, nodes, strict=not soft)
    _check_requests(stage, nodes & (settled == 0) & ~joined & ~has_class, soft=soft)


def _check_joined(stage: Stage) -> Flags:
    """Checks that references and resources stay on their device; returns a mask of the nodes that they join."""
    graph, edges = stage.graph, stage.edges
    kinds, kind_of = graph.distinct_properties()
    follows = np.array([any(needs_source_device(k, p) for p in range(len(k.input_types))) for k in kinds])
    inspected = [call.id for call in calls_giving_resources(graph)]  # their bodies decide, which are not looked at here
    joins = np.zeros(len(edges.id), np.bool_)
    for at in np.flatnonzero(stage.is_data & follows[kind_of[edges.dst]]).tolist():
        properties = graph.node_properties(int(edges.dst[at]))
        joins[at] = needs_source_device(properties, int(edges.dst_input[at])) and edges.src[at] not in inspected
    assigned = graph.assigned_device_indices()
    stage.no_edge(
        "a reference or a resource handle does not leave its device",
        joins & (assigned[edges.src] != assigned[edges.dst]),
        lambda at: f"goes from {graph.assigned_device(edges.src[at])} to {graph.assigned_device(edges.dst[at])}",
    )
    touched = np.zeros(len(stage.live), np.bool_)
    touched[edges.src[joins]] = touched[edges.dst[joins]] = True
    touched[inspected] = True
    touched[edges.dst[np.isin(edges.src, inspected)]] = True
    touched[edges.src[np.isin(edges.dst, inspected)]] = True
    return touched


def _check_classes(stage: Stage, devices: DeviceSet, nodes: Flags, *, strict: bool) -> Flags:
    """Checks kernels and the groups of `_class`; returns a mask of the nodes that are in such a group."""
    graph = stage.graph
    kinds, kind_of = kinds_of(graph, devices.types)
    types = [_type(name) for name in graph.device_names()]
    assigned = graph.assigned_device_indices()
    kind_column = np.array(kind_of)
    has_kernel = np.array([[kind in k.types for kind in types] for k in kinds])[np.maximum(kind_column, 0), assigned]
    stage.no_node(
        "a device has a kernel for its nodes", nodes & ~has_kernel, lambda node: f"is on {graph.assigned_device(node)}"
    )
    in_group = np.zeros(len(stage.live), np.bool_)
    home: dict[str, int] = {}
    has_class = np.array([k.has_class for k in kinds])[np.maximum(kind_column, 0)] & nodes
    for node in np.flatnonzero(has_class).tolist():
        for group in graph.node_properties(node).colocated_with:
            first_member = graph.find_id(group)
            first_member = home.setdefault(group, node) if first_member is None else first_member
            in_group[[node, first_member]] = True
            if strict and assigned[node] != assigned[first_member]:
                where = f"is on {graph.assigned_device(node)}, {group!r} on {graph.assigned_device(first_member)}"
                raise stage.broken("colocated nodes are on one device", f"{stage.text(node)!r} {where}", node)
    return in_group


def _check_requests(stage: Stage, nodes: Flags, *, soft: bool) -> None:
    """Checks that nodes are on the requested device, or with soft placement in the requested task."""
    graph = stage.graph
    names = graph.device_names()
    requested, assigned = graph.requested_device_indices(), graph.assigned_device_indices()
    pairs, pair_of = np.unique(requested.astype(np.int64) * len(names) + assigned, return_inverse=True)
    fits = np.array([_fits(*(names[i] for i in divmod(pair, len(names))), soft=soft) for pair in pairs.tolist()])
    stage.no_node(
        "a node is where it asks to be",
        nodes & ~fits[pair_of.reshape(-1)],
        lambda node: f"asks for {names[requested[node]]!r} and is on {names[assigned[node]]!r}",
    )


def _fits(request: str, assigned: str, *, soft: bool) -> bool:
    requested, place = find_full_name(request), find_full_name(assigned)
    if requested is None or place is None:
        return not assigned
    if soft:
        parts = ((requested.job, place.job), (requested.replica, place.replica), (requested.task, place.task))
        return all(part in (None, there) for part, there in parts)
    return is_specification(requested, place)


def _type(name: str) -> str:
    parsed = find_full_name(name)
    return "" if parsed is None else parsed.type or ""
