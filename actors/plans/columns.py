"""A partition graph as columns: the form in which plans and the reference executor read it.

Nodes are numbered densely in topological order, without source and sink, and so are the outputs of nodes. Of
y = -x + 1, where x is fed, these are the columns:

    node                      0 one   1 _arg_x   2 neg   3 y   4 _retval_y
    first_value               1       2          3       4     5            and 5, one past the last
    data.src -> data.dst      1 -> 2  2 -> 3  0 -> 3  3 -> 4                in the order of destinations, then ports
    data_value                2       3       1       4                     the output that each edge carries
    inputs[3]                 [3, 1]                                        those that y takes in

An edge's source stands before its destination, unless the source is a NextIteration: those edges lead back to a Merge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np

from ...errors import InternalError, InvalidArgumentError
from ...graph.arrays import Flags, Numbers, grouped, inverse, positions, ready_order, starts_of
from ...graph.columns import CONTROL_SLOT, SINK_ID
from ...graph.ops.record import NodeClass

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties

Kinds: TypeAlias = "Callable[[NodeProperties], NodeProperties]"


@dataclass(frozen=True, slots=True)
class RaggedRows:
    """Variable-length rows of ints: row `r` is `items[starts[r]:starts[r + 1]]`."""

    starts: list[int]
    items: list[int]

    def __getitem__(self, row: int) -> list[int]:
        return self.items[self.starts[row] : self.starts[row + 1]]


class Nodes(NamedTuple):
    """Nodes in any order: their ids in the graph (-1 for those that it does not have), names and properties.

    `kinds[kind[n]]` are the properties of node n, of a transfer those it shares with others (the graph has the rest).
    """

    ids: list[int]
    names: list[str]
    kinds: list[NodeProperties]
    kind: Numbers

    def reordered(self, order: Numbers) -> Nodes:
        """Those nodes that `order` lists, in its order."""
        chosen = order.tolist()
        ids, names = list(map(self.ids.__getitem__, chosen)), list(map(self.names.__getitem__, chosen))
        return Nodes(ids, names, self.kinds, self.kind[order])


class NumberedEdges(NamedTuple):
    """Edges over numbered nodes, in any order; a control edge has CONTROL_SLOT as output and port."""

    src: Numbers
    output: Numbers
    dst: Numbers
    port: Numbers


class ControlEdges(NamedTuple):
    """Control edges over numbered nodes, sorted by destination."""

    src: Numbers
    dst: Numbers


@dataclass(frozen=True, kw_only=True)
class OrderedGraph:
    """A graph with its nodes in topological order. Data edges are sorted by (destination, port), control edges apart.

    Node columns are as in `Nodes`; `properties[n]` is `kinds[kind[n]]`. `first_value[n]` is the number of output 0 of
    node n. Numbers of outputs start at 1, so that 0 can mean "none".
    """

    ids: list[int]
    names: list[str]
    kinds: list[NodeProperties]
    kind: Numbers
    properties: list[NodeProperties]
    first_value: Numbers
    data: NumberedEdges
    control: ControlEdges

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def num_values(self) -> int:
        """One more than the largest number of an output."""
        return int(self.first_value[-1])

    @cached_property
    def data_value(self) -> Numbers:
        """By data edge: the number of the output that it carries."""
        return self.first_value[self.data.src] + self.data.output

    @cached_property
    def input_starts(self) -> Numbers:
        """By node: where the data edges into it begin; then where all end."""
        return starts_of(self.data.dst, self.num_nodes)

    @cached_property
    def inputs(self) -> RaggedRows:
        """By node: the numbers of the outputs that it takes in, by port."""
        return RaggedRows(self.input_starts.tolist(), self.data_value.tolist())

    @cached_property
    def control_inputs(self) -> RaggedRows:
        """By node: the nodes that it waits for by control edges."""
        return RaggedRows(starts_of(self.control.dst, self.num_nodes).tolist(), self.control.src.tolist())

    def producers(self) -> tuple[Numbers, Numbers]:
        """The nodes that a node takes values from or waits for: where those of each begin, and all in a row."""
        src = np.concatenate([self.data.src, self.control.src])
        starts, edges = grouped(np.concatenate([self.data.dst, self.control.dst]), self.num_nodes)
        return starts, src[edges]


def columns_of(graph: Graph) -> OrderedGraph:
    """The columns of a graph.

    Raises InvalidArgumentError when an input is not connected, InternalError for a cycle that is no loop.
    """
    all_names, (kinds, kind_of) = graph.names(), graph.distinct_properties()
    ids = graph.live_nodes()[SINK_ID + 1 :].astype(np.int64)
    names = cast("list[str]", list(map(all_names.__getitem__, ids.tolist())))
    number = np.full(max(graph.num_node_ids, 1), -1, np.int64)  # by id; source and sink keep -1
    number[ids] = np.arange(len(ids))
    edges = graph.edge_arrays()
    src, dst = number[edges.src], number[edges.dst]
    inside = (src >= 0) & (dst >= 0)
    output, port = edges.src_output[inside].astype(np.int64), edges.dst_input[inside].astype(np.int64)
    return ordered_columns(
        Nodes(ids.tolist(), names, kinds, kind_of[ids]), NumberedEdges(src[inside], output, dst[inside], port)
    )


def ordered_columns(nodes: Nodes, edges: NumberedEdges) -> OrderedGraph:
    """The columns of nodes in any order, and of edges over them; raises as `columns_of`."""
    order = _topological_order(nodes, edges)
    if order is not None:
        position = inverse(order)
        nodes = nodes.reordered(order)
        edges = edges._replace(src=position[edges.src], dst=position[edges.dst])
    return _sorted_columns(nodes, edges)


def with_launches(columns: OrderedGraph, is_deferred: Flags, launch: Kinds, arrival: Kinds) -> OrderedGraph:
    """The columns with two nodes in place of each deferred one: one takes its inputs, the next has its outputs.

    `launch` and `arrival` make the properties of these from those of the node.
    """
    old = np.repeat(np.arange(columns.num_nodes), 1 + is_deferred)  # by new number the old one
    # By old number: where the node now stands; of two the launch, which is first, or the arrival behind it.
    arrival_at = np.arange(columns.num_nodes) + np.cumsum(is_deferred)
    launch_at = arrival_at - is_deferred
    kinds, kind = list(columns.kinds), columns.kind[old]
    for node in positions(is_deferred).tolist():
        kind[launch_at[node]], kind[arrival_at[node]] = len(kinds), len(kinds) + 1
        kinds += [launch(columns.properties[node]), arrival(columns.properties[node])]
    data, control = columns.data, columns.control
    none = np.full(len(control.src), CONTROL_SLOT)
    return ordered_columns(
        Nodes(columns.ids, columns.names, columns.kinds, columns.kind).reordered(old)._replace(kinds=kinds, kind=kind),
        NumberedEdges(
            arrival_at[np.concatenate([data.src, control.src])],
            np.concatenate([data.output, none]),
            launch_at[np.concatenate([data.dst, control.dst])],
            np.concatenate([data.port, none]),
        ),
    )


def _sorted_columns(nodes: Nodes, edges: NumberedEdges) -> OrderedGraph:
    """Sorts the edges, numbers the outputs, and makes sure that every input port has its edge."""
    kinds, kind = nodes.kinds, nodes.kind
    # Counted once per kind, then looked up for all nodes: a graph of a million nodes has some hundred kinds.
    num_outputs = np.array([len(p.output_types) for p in kinds], np.int64)[kind]
    num_inputs = np.array([len(p.input_types) for p in kinds], np.int64)[kind]
    data = positions(edges.output >= 0)
    data = data[np.lexsort((edges.port[data], edges.dst[data]))]
    connected = np.bincount(edges.dst[data], minlength=len(kind))
    if (connected != num_inputs).any():
        node = int(positions(connected != num_inputs)[0])
        name, missing = nodes.names[node], int(num_inputs[node] - connected[node])
        raise InvalidArgumentError(f"Incomplete graph, missing {missing} inputs for {name}", node=name)
    control = positions(edges.output < 0)
    control = control[np.argsort(edges.dst[control], kind="stable")]
    return OrderedGraph(
        ids=nodes.ids,
        names=nodes.names,
        kinds=kinds,
        kind=kind,
        properties=list(map(kinds.__getitem__, kind.tolist())),
        first_value=np.concatenate([[0], np.cumsum(num_outputs)]) + 1,
        data=NumberedEdges(edges.src[data], edges.output[data], edges.dst[data], edges.port[data]),
        control=ControlEdges(edges.src[control], edges.dst[control]),
    )


def _topological_order(nodes: Nodes, edges: NumberedEdges) -> Numbers | None:
    """The nodes sorted topologically; None when they are sorted already.

    Most graphs are sorted as they come, or once nodes without inputs stand first (feeds are added last, with the
    highest ids), which costs a few comparisons of columns. Only the rest is sorted node by node: of those whose inputs
    have come the one that stands first among them.
    """
    if (edges.src < edges.dst).all():
        return None
    count = len(nodes.kind)
    order = np.argsort(np.bincount(edges.dst, minlength=count) > 0, kind="stable")
    position = inverse(order)
    leads_back = np.array([p.op_def.record.node_class is NodeClass.NEXT_ITERATION for p in nodes.kinds], bool)
    onward = ~leads_back[nodes.kind[edges.src]]
    src, dst = position[edges.src[onward]], position[edges.dst[onward]]
    if (src < dst).all():
        return order
    starts, members = grouped(src, count)
    consumer = dst[members].tolist()
    consumers = [consumer[start:end] for start, end in pairwise(starts.tolist())]
    sorted_positions = ready_order(consumers, np.bincount(dst, minlength=count).tolist(), lowest_first=True)
    if len(sorted_positions) < count:
        raise InternalError("a partition has a cycle outside of loops; validate graphs before compiling them")
    return order[sorted_positions]
