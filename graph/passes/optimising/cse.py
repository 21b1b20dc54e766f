"""Common subexpression elimination: nodes that compute the same from the same inputs are merged.

Nodes are equal if op, attrs, inputs (in any order for commutative ops) and control inputs are equal; devices do not
matter. The first one visited is kept, with its name and device, and gets all consumers. Stateful nodes, nodes with
reference inputs, and placeholders are never merged.

Inputs are visited before consumers, so that whole expressions are merged in one walk. Among nodes that differ only in
control inputs, only the first is remembered; a later one with other control inputs is not merged with anything.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Numbers, starts_of
from ...columns import CONTROL_SLOT, SINK_ID, EdgeArrays
from ...dtypes import is_ref
from ...graph import Graph
from ...ops.properties import NodeProperties
from ..traversal import reverse_post_order


def merge_common_subexpressions(graph: Graph) -> Graph:
    """The graph without duplicates, or the same object if there are none."""
    kinds = _KindNumbers(graph)
    edges = graph.edge_arrays()
    is_data = edges.src_output != CONTROL_SLOT
    value = np.where(is_data, kinds.first_value[edges.src] + edges.src_output, -1)
    if not _may_have_duplicates(kinds, value[is_data], edges.dst[is_data], edges.dst_input[is_data]):
        return graph
    survivors = _survivors(graph, kinds, edges, value)
    return _merged(graph, edges, survivors) if survivors else graph


class _KindNumbers:
    """Numbers for the kinds of nodes and for their outputs.

    `of[n]` is equal for nodes of equal op and attrs, and -1 for nodes that are never merged; node n has
    `num_outputs[n]` outputs, the first of which is value `first_value[n]`.
    """

    def __init__(self, graph: Graph) -> None:
        shared, shared_of = graph.distinct_properties()
        self._numbers: dict[tuple[str, tuple[bytes, ...]], int] = {}
        self._commutative: set[int] = set()
        self.of = np.array([*map(self._number, shared), -1], np.int64)[shared_of]
        self.of[: SINK_ID + 1] = -1
        for node in np.flatnonzero((graph.details()[1] >= 0) & (self.of >= 0)).tolist():
            self.of[node] = self._number(graph.node_properties(node))
        counts = np.array([*(len(kind.output_types) for kind in shared), 0], np.int64)[shared_of]
        self.num_outputs = counts
        self.first_value = np.cumsum(counts) - counts
        self.is_commutative = np.isin(self.of, list(self._commutative))

    def _number(self, kind: NodeProperties) -> int:
        if kind.op_def.is_stateful or kind.op_def.record.is_placeholder or any(map(is_ref, kind.input_types)):
            return -1
        number = self._numbers.setdefault((kind.op, tuple(sorted(kind.entries))), len(self._numbers))
        if kind.op_def.is_commutative:
            self._commutative.add(number)
        return number


def _may_have_duplicates(kinds: _KindNumbers, value: Numbers, dst: Numbers, port: Numbers) -> bool:
    """A necessary condition in numpy: two nodes of one kind have the same sum over their data inputs."""
    port = np.where(kinds.is_commutative[dst], 0, port)
    weights = (value.astype(np.uint64) + 1) * np.uint64(0x9E3779B97F4A7C15)
    weights ^= (port.astype(np.uint64) + 1) * np.uint64(0xC2B2AE3D27D4EB4F)
    sums = np.zeros(len(kinds.of), np.uint64)
    np.add.at(sums, dst, weights * (weights >> np.uint64(29)))
    mergeable = kinds.of >= 0
    prints = sums[mergeable] ^ (kinds.of[mergeable].astype(np.uint64) * np.uint64(0x165667B19E3779F9))
    return len(np.unique(prints)) < len(prints)


def _survivors(graph: Graph, kinds: _KindNumbers, edges: EdgeArrays, value: Numbers) -> dict[int, int]:
    """Duplicates -> the equal nodes that are kept."""
    by_port = np.lexsort((edges.dst_input, edges.dst))  # control edges, whose port is -1, come first
    starts, inputs = starts_of(edges.dst, graph.num_node_ids).tolist(), value[by_port].tolist()
    sources = edges.src[by_port].tolist()
    num_controls = np.bincount(edges.dst[value < 0], minlength=graph.num_node_ids).tolist()
    kind_of, is_commutative = kinds.of.tolist(), kinds.is_commutative.tolist()
    first_value, num_outputs = kinds.first_value.tolist(), kinds.num_outputs.tolist()
    value_now = list(range(int(kinds.num_outputs.sum())))  # by value: the value that replaces it
    survivors: dict[int, int] = {}
    first: dict[tuple[int, ...], int] = {}

    def waits_for(node: int) -> set[int]:
        start = starts[node]
        return {survivors.get(src, src) for src in sources[start : start + num_controls[node]]}

    for node in reverse_post_order(graph):
        kind = kind_of[node]
        if kind < 0:
            continue
        read = [value_now[i] for i in inputs[starts[node] + num_controls[node] : starts[node + 1]]]
        if is_commutative[node]:
            read.sort()
        known = first.setdefault((kind, *read), node)
        if known != node and waits_for(known) == waits_for(node):
            survivors[node] = known
            for port in range(num_outputs[node]):
                value_now[first_value[node] + port] = first_value[known] + port
    return survivors


def _merged(graph: Graph, edges: EdgeArrays, survivor_of: dict[int, int]) -> Graph:
    """A copy in which survivors feed the consumers of their duplicates, and the duplicates are removed."""
    result = graph.clone()
    survivor = np.arange(graph.num_node_ids, dtype=np.int64)
    survivor[list(survivor_of)] = list(survivor_of.values())
    is_gone = survivor != np.arange(graph.num_node_ids)
    moved = np.flatnonzero(is_gone[edges.src] & ~is_gone[edges.dst])
    is_control = edges.src_output == CONTROL_SLOT
    pairs = edges.src.astype(np.int64) * graph.num_node_ids + edges.dst
    new_pairs = survivor[edges.src[moved]] * graph.num_node_ids + edges.dst[moved]
    is_repeated = is_control[moved] & np.isin(new_pairs, pairs[is_control])
    moved = moved[~is_repeated]
    result.extend_edges(survivor[edges.src[moved]], edges.src_output[moved], edges.dst[moved], edges.dst_input[moved])
    result.keep_only(~is_gone)
    return result
