"""Imports a `Graph` without writing it as a GraphDef and reading that: the graph is the same, in a fifth of the time.

    Graph --columns--> names, inputs, kinds --checks and order of an import--> Graph
      `------ to_graph_def, to bytes, parsed -------'

What only the text of a node says (inputs that have no edge, debug information) is left to the longer way.
"""

from __future__ import annotations

import numpy as np

from ...errors import PartitaError
from ..arrays import Numbers
from ..columns import CONTROL_SLOT, SINK_ID, Ids
from ..graph import Graph
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties, PropertiesCache
from .import_edges import NodeInputs, creation_order, edge_columns
from .import_inputs import NamedNodes
from .import_names import check_node_names


def reimported(
    graph: Graph, library: FunctionLibrary, *, add_default_attrs: bool, allow_internal_names: bool
) -> Graph | None:
    """What the GraphDef of a graph would become, beside the functions of `library`; None if the text must be read.

    Raises InvalidArgumentError as that import would, for names, inputs, types and cycles.
    """
    live = graph.live_nodes()
    live = live[live > SINK_ID]
    kinds, kind_of = graph.distinct_properties()
    details, rows = graph.details()
    if (details is not None and (rows[live] >= 0).any()) or any(kind.remarks for kind in kinds):
        return None
    functions = library.merged(graph.functions.message)
    imported = _imported_kinds(kinds, PropertiesCache(add_defaults=add_default_attrs, lookup=functions.lookup))
    inputs = _inputs(graph, live)
    kind_of = kind_of[live]
    if imported is None or (inputs.num_data() != _num_inputs(imported)[kind_of]).any():
        return None
    check_node_names(inputs, internal=allow_internal_names)
    inputs.check_types(imported, kind_of, graph)
    order = np.array(creation_order(inputs.names, list(map(imported.__getitem__, kind_of.tolist())), inputs), np.int64)
    return _ordered(graph, live, inputs, imported, kind_of, order, functions)


def _imported_kinds(kinds: list[NodeProperties], cache: PropertiesCache) -> list[NodeProperties] | None:
    """The properties of nodes as an import has them; None if one of them raises an error, which names a node."""
    try:
        return [cache.resolve(kind.op, kind.entries) for kind in kinds]
    except PartitaError:
        return None


def _num_inputs(kinds: list[NodeProperties]) -> Numbers:
    return np.array([len(kind.input_types) for kind in kinds], np.int64)


def _inputs(graph: Graph, live: Ids) -> NodeInputs:
    """The inputs of nodes by their position in `live`: data inputs by port, then control inputs by name."""
    position = np.full(graph.num_node_ids, -1, np.int32)
    position[live] = np.arange(len(live), dtype=np.int32)
    edges, all_names = graph.edge_arrays(), graph.names()
    names = [str(all_names[i]) for i in live.tolist()]
    source, node = position[edges.src], position[edges.dst]
    inside = (source >= 0) & (node >= 0)
    source, node, port, slot = source[inside], node[inside], edges.src_output[inside], edges.dst_input[inside]
    is_control = slot == CONTROL_SLOT
    rank = np.zeros(len(live), np.int32)
    by_name = sorted(np.unique(source[is_control]).tolist(), key=names.__getitem__)
    rank[by_name] = np.arange(len(by_name), dtype=np.int32)
    order = np.lexsort((np.where(is_control, rank[source], slot), is_control, node))
    source, node, port, is_control = source[order], node[order], port[order], is_control[order]
    repeats = np.zeros(len(order), np.bool_)
    repeats[1:] = is_control[1:] & is_control[:-1] & (source[1:] == source[:-1]) & (node[1:] == node[:-1])
    named = NamedNodes(names, dict(zip(names, range(len(names)), strict=True)))
    return NodeInputs.of_rows(named, node[~repeats], source[~repeats], port[~repeats])


def _ordered(
    graph: Graph,
    live: Ids,
    inputs: NodeInputs,
    kinds: list[NodeProperties],
    kind_of: Numbers,
    order: Numbers,
    functions: FunctionLibrary,
) -> Graph:
    """The nodes in the order in which an import creates them, and the edges in that of their ids."""
    made = Graph()
    first = made.num_node_ids
    new_id = np.empty(len(live), np.int32)
    new_id[order] = np.arange(first, first + len(live), dtype=np.int32)
    assigned, requested = graph.assigned_device_indices()[live], graph.requested_device_indices()[live]
    devices = np.where(assigned > 0, assigned, requested)[order]
    number = np.zeros(len(graph.device_names()), np.int32)
    for index in dict.fromkeys(devices.tolist()):
        number[index] = made.intern_device(graph.device_names()[index])
    names = list(map(inputs.names.__getitem__, order.tolist()))
    made.extend_nodes_of_kinds(names, kinds, kind_of[order], number[devices].tolist())
    made.extend_edges(*edge_columns(new_id, new_id - first, inputs, {}))
    made.fix_source_and_sink_edges()
    made.functions, made.versions, made.debug_info = functions, graph.versions, graph.debug_info
    return made
