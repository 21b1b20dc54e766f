"""A partition graph as columns: the form in which plans and the reference executor read it.

Flows in: a `Graph`. Flows out: `Columns`, dense node indices in a deterministic topological order (back edges into
Merge nodes aside), edges as int arrays over them, and a number for every output. Always holds: source and sink are
gone; an edge's source stands before its destination unless the source is a NextIteration; same graph, same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError, InvalidArgumentError
from ...graph.columns import CONTROL_SLOT, SINK_ID
from ...graph.ops.record import NodeClass

if TYPE_CHECKING:
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties

Ints = NDArray[np.intp]
Flags = NDArray[np.bool_]
Kinds: TypeAlias = "Callable[[NodeProperties], NodeProperties]"


@dataclass(frozen=True, slots=True)
class Rows:
    """Variable-length rows of ints: row `r` is `items[starts[r]:starts[r + 1]]`."""

    starts: list[int]
    items: list[int]

    def __getitem__(self, row: int) -> list[int]:
        return self.items[self.starts[row] : self.starts[row + 1]]


@dataclass(frozen=True)
class Columns:
    """Nodes 0..n-1 in topological order. Edge arrays are sorted by (destination, input port), control edges apart.

    `ids` are those in the graph; `kinds[kind[n]]` are the properties of node n, of a transfer those it shares with
    others (what it transfers, the graph knows). `first_value[n]` is the number of output 0 of node n; numbers start at
    1, so that 0 can mean "none".
    """

    ids: list[int]
    names: list[str]
    properties: list[NodeProperties]
    kinds: list[NodeProperties]
    kind: Ints
    first_value: Ints
    data_src: Ints
    data_src_output: Ints
    data_dst: Ints
    data_dst_input: Ints
    control_src: Ints
    control_dst: Ints

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.names)

    @property
    def num_values(self) -> int:
        """One more than the largest number of an output."""
        return int(self.first_value[-1])

    @cached_property
    def data_value(self) -> Ints:
        """Number of the output that each data edge carries."""
        return self.first_value[self.data_src] + self.data_src_output

    @cached_property
    def input_starts(self) -> Ints:
        """Where the data edges into each node begin, and where all end."""
        return starts_of(self.data_dst, self.num_nodes)

    @cached_property
    def inputs(self) -> Rows:
        """Per node: the numbers of the outputs it takes in, by port."""
        return _rows(self.data_dst, self.data_value, self.num_nodes)

    @cached_property
    def control_inputs(self) -> Rows:
        """Per node: the nodes it waits for."""
        return _rows(self.control_dst, self.control_src, self.num_nodes)

    def producers(self) -> tuple[Ints, Ints]:
        """The nodes that a node takes values from or waits for: where those of each begin, and all in a row."""
        dst = np.concatenate([self.data_dst, self.control_dst])
        by_dst = np.argsort(dst, kind="stable")
        return starts_of(dst, self.num_nodes), np.concatenate([self.data_src, self.control_src])[by_dst]


def starts_of(owner: Ints, count: int) -> Ints:
    """Where the rows of each of `count` owners begin once they are sorted, and where the last ends."""
    starts = np.zeros(count + 1, np.intp)
    np.cumsum(np.bincount(owner, minlength=count), out=starts[1:])
    return starts


def columns_of(graph: Graph) -> Columns:
    """The columns of a graph.

    Raises InvalidArgumentError when an input is not connected, InternalError for a cycle that is no loop.
    """
    all_names, (kinds, kind_of) = graph.names(), graph.distinct_properties()
    ids = graph.live_nodes()[SINK_ID + 1 :].astype(np.intp)
    edges = graph.edge_arrays()
    dense = np.full(max(graph.num_node_ids, 1), -1, np.intp)
    dense[ids] = np.arange(len(ids))
    src, dst = dense[edges.src], dense[edges.dst]
    kept = (src >= 0) & (dst >= 0)
    names = list(map(all_names.__getitem__, ids.tolist()))
    edges_between = src[kept], edges.src_output[kept].astype(np.intp), dst[kept], edges.dst_input[kept].astype(np.intp)
    return ordered_columns(ids.tolist(), cast("list[str]", names), kinds, kind_of[ids], *edges_between)


def ordered_columns(
    ids: list[int],
    names: list[str],
    kinds: list[NodeProperties],
    kind: Ints,
    src: Ints,
    src_output: Ints,
    dst: Ints,
    dst_input: Ints,
) -> Columns:
    """The columns of nodes in any order, and of edges over them; raises as `columns_of`."""
    order = _order(kinds, kind, src, dst)
    if order is not None:
        position = np.empty(len(ids), np.intp)
        position[order] = np.arange(len(ids))
        kind, src, dst = kind[order], position[src], position[dst]
        in_order = order.tolist()
        ids, names = list(map(ids.__getitem__, in_order)), list(map(names.__getitem__, in_order))
    properties = list(map(kinds.__getitem__, kind.tolist()))
    return _assemble(ids, names, properties, kinds, kind, src, dst, src_output, dst_input)


def with_launches(columns: Columns, is_deferred: Flags, launch: Kinds, arrival: Kinds) -> Columns:
    """The columns with two nodes in place of each deferred one: one takes its inputs, the next has its outputs.

    `launch` and `arrival` make the properties of these from those of the node.
    """
    count = columns.num_nodes
    shift = np.cumsum(is_deferred)
    first = np.arange(count) + shift - is_deferred  # where a node stands now, of two the first
    last = np.arange(count) + shift
    repeats = 1 + is_deferred.astype(np.intp)
    old = np.repeat(np.arange(count), repeats)
    kinds, kind = list(columns.kinds), columns.kind[old]
    for node in np.flatnonzero(is_deferred).tolist():
        kind[first[node]], kind[last[node]] = len(kinds), len(kinds) + 1
        kinds += [launch(columns.properties[node]), arrival(columns.properties[node])]
    return ordered_columns(
        [columns.ids[n] for n in old.tolist()],
        [columns.names[n] for n in old.tolist()],
        kinds,
        kind,
        np.concatenate([last[columns.data_src], last[columns.control_src]]),
        np.concatenate([columns.data_src_output, np.full(len(columns.control_src), CONTROL_SLOT)]),
        np.concatenate([first[columns.data_dst], first[columns.control_dst]]),
        np.concatenate([columns.data_dst_input, np.full(len(columns.control_dst), CONTROL_SLOT)]),
    )


def _assemble(
    ids: list[int],
    names: list[str],
    properties: list[NodeProperties],
    kinds: list[NodeProperties],
    kind: Ints,
    src: Ints,
    dst: Ints,
    src_output: Ints,
    dst_input: Ints,
) -> Columns:
    """Sorts the edges, numbers the outputs, and makes sure that every input port has its edge."""
    num_outputs = np.array([len(p.output_types) for p in kinds], np.intp)[kind]
    num_inputs = np.array([len(p.input_types) for p in kinds], np.intp)[kind]
    first_value = np.concatenate([[0], np.cumsum(num_outputs)]) + 1
    data = np.flatnonzero(src_output >= 0)
    data = data[np.lexsort((dst_input[data], dst[data]))]
    found = np.bincount(dst[data], minlength=len(names))
    if (found != num_inputs).any():
        node = int(np.flatnonzero(found != num_inputs)[0])
        missing = int(num_inputs[node] - found[node])
        raise InvalidArgumentError(f"Incomplete graph, missing {missing} inputs for {names[node]}", node=names[node])
    control = np.flatnonzero(src_output < 0)
    control = control[np.argsort(dst[control], kind="stable")]
    edges = src[data], src_output[data], dst[data], dst_input[data], src[control], dst[control]
    return Columns(ids, names, properties, kinds, kind, first_value, *edges)


def _rows(owner: Ints, items: Ints, count: int) -> Rows:
    """Groups `items` by their sorted `owner`."""
    return Rows(starts_of(owner, count).tolist(), items.tolist())


def _order(kinds: Sequence[NodeProperties], kind: Ints, src: Ints, dst: Ints) -> Ints | None:
    """The permutation that sorts the nodes topologically; None when they are sorted already."""
    if (src < dst).all():
        return None
    is_root = np.bincount(dst, minlength=len(kind)) == 0
    roots_first = np.concatenate([np.flatnonzero(is_root), np.flatnonzero(~is_root)])
    position = np.empty(len(kind), np.intp)
    position[roots_first] = np.arange(len(kind))
    src, dst = position[src], position[dst]
    forward = src < dst
    if forward.all():
        return roots_first
    advances = np.array([p.op_def.record.node_class is NodeClass.NEXT_ITERATION for p in kinds], bool)
    onward = ~advances[kind[roots_first[src]]]
    if forward[onward].all():
        return roots_first
    src, dst = src[onward], dst[onward]
    by_dst = np.argsort(dst, kind="stable")
    return roots_first[_depth_first(_rows(dst[by_dst], src[by_dst], len(kind)), len(kind))]


def _depth_first(inputs: Rows, count: int) -> list[int]:
    """Nodes in ascending order, each preceded by those of its inputs that had not come yet."""
    done, opened = bytearray(count), bytearray(count)
    order: list[int] = []
    for root in range(count):
        stack = [root]
        while stack:
            node = stack[-1]
            waiting = [] if done[node] else [source for source in inputs[node] if not done[source]]
            if not waiting:
                stack.pop()
                if not done[node]:
                    done[node] = 1
                    order.append(node)
            elif opened[node]:
                raise InternalError("a partition has a cycle outside of loops; validate graphs before compiling them")
            else:
                opened[node] = 1
                stack.extend(reversed(waiting))
    return order
