"""Which nodes the value of a node reaches: by data edges, and through variables.

    g -> AssignAddVariableOp(m)  ..control..>  ReadVariableOp(m) -> update of w

The read is after the update, so it depends on g, although no data edge says so. An update is connected to every read of
its variable that the graph orders after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...errors import NotFoundError
from ..arrays import grouped, inverse, positions, topological_order
from ..columns import SINK_ID, SOURCE_ID, Ids
from ..dtypes import DataType, is_ref
from ..edge_ends import Output, by_consumer
from ..graph import Graph
from ..library.calls import called_by, calls_functions
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass, Updates, record_of
from ..tensor_id import parse_tensor_name


class ValueFlow:
    """The edges of one graph by node id: a snapshot. Edges that close a loop are left out of `order`."""

    def __init__(self, graph: Graph) -> None:
        """Reads all edges of `graph`."""
        self.graph = graph
        self.count = graph.num_node_ids
        self.kinds: Sequence[NodeProperties | None] = graph.shared_properties()
        edges = graph.edge_arrays()
        inner = (edges.src != SOURCE_ID) & (edges.dst != SINK_ID)
        data = positions(inner & (edges.dst_input >= 0))
        data = data[by_consumer(edges.dst[data], edges.dst_input[data])]
        self.sources = self._pairs(edges.dst[data], edges.src[data], edges.src_output[data])
        """the outputs that a node reads, by port"""
        self.readers = self._pairs(edges.src[data], edges.dst[data], edges.dst_input[data])
        """the consumers of a node: (consumer, its input port)"""
        self._src, self._dst = edges.src[inner], edges.dst[inner]

    def _pairs(self, owner: Ids, nodes: Ids, ports: Ids) -> list[list[Output]]:
        """The pairs of (node, port) of each owner."""
        found = grouped(owner, self.count)
        members, starts = found.members, found.starts.tolist()
        pairs = list(zip(nodes[members].tolist(), ports[members].tolist(), strict=True))
        return [pairs[first:last] for first, last in pairwise(starts)]

    @cached_property
    def after(self) -> list[list[int]]:
        """By node those that the graph orders right after it, by data or control."""
        found = grouped(self._src, self.count)
        consumers, starts = self._dst[found.members].tolist(), found.starts.tolist()
        return [consumers[first:last] for first, last in pairwise(starts)]

    @cached_property
    def order(self) -> list[int]:
        """The nodes in a topological order: those that are ready at the same time follow each other."""
        closes = self.graph.flags(lambda kind: kind.op_def.record.node_class is NodeClass.NEXT_ITERATION)
        keep = ~closes[self._src]
        found = grouped(self._src[keep], self.count)
        return topological_order(found.starts, self._dst[keep][found.members])

    @cached_property
    def position(self) -> list[int]:
        """By node its place in `order`; nodes behind a damaged cycle come last."""
        order = np.array(self.order, np.int64)
        missing = np.setdiff1d(np.arange(self.count), order)
        return inverse(np.concatenate([order, missing])).tolist()

    # Variables

    def variable(self, node: int) -> int | None:
        """The node that makes the variable which a node reads, updates or passes on; None if it has none."""
        seen = set[int]()
        while node not in seen:
            seen.add(node)
            kind = self.kinds[node]
            port = None if kind is None else next((p for p, t in enumerate(kind.input_types) if is_handle(t)), None)
            if port is None or port >= len(self.sources[node]):
                return node if kind is not None and any(map(is_handle, kind.output_types)) else None
            node = self.sources[node][port][0]
        return None

    @cached_property
    def updates(self) -> list[int]:
        """The nodes that change variables, by ascending id: update ops, and calls of functions that have some."""
        library = self.graph.functions
        known: dict[int, bool] = {}
        found = []
        for node, kind in enumerate(self.kinds):
            if kind is None or node <= SINK_ID:
                continue
            if id(kind) not in known:
                known[id(kind)] = kind.op_def.record.updates is not None or (
                    calls_functions(kind, library)
                    and any(map(is_handle, kind.input_types))
                    and self._updates_inside(kind)
                )
            if known[id(kind)]:
                found.append(node)
        return found

    def _updates_inside(self, kind: NodeProperties) -> bool:
        library = self.graph.functions
        names = library.closure(call.name for call in called_by(kind, library))
        bodies = (library.find(name) for name in names)
        return any(record_of(n.op).updates is not None for body in bodies if body is not None for n in body.node_def)

    @cached_property
    def reads(self) -> dict[int, list[int]]:
        """By variable the nodes that read its value."""
        found: dict[int, list[int]] = {}
        for node, kind in enumerate(self.kinds):
            if kind is None or node <= SINK_ID or not any(map(is_handle, kind.input_types)):
                continue
            updates, passes_on = kind.op_def.record.updates, any(map(is_handle, kind.output_types))
            if updates is Updates.GRADIENT or (updates is None and not passes_on):
                variable = self.variable(node)
                if variable is not None:
                    found.setdefault(variable, []).append(node)
        return found

    def read_after(self, update: int) -> list[int]:
        """The reads of the variable of an update that come after it."""
        reads = {read for variable in self.variables(update) for read in self.reads.get(variable, ())} - {update}
        return sorted(reads & self.reached([update], self.after)) if reads else []

    def variables(self, update: int) -> list[int]:
        """The nodes that make the variables which a node may change: slots too, and all that a call is given."""
        kind = self.kinds[update]
        if kind is None or kind.op_def.record.updates is Updates.VALUE:
            variable = self.variable(update)
            return [] if variable is None else [variable]
        handles = (source for source, t in zip(self.sources[update], kind.input_types, strict=True) if is_handle(t))
        found = (self.variable(source) for source, _ in handles)
        return list(dict.fromkeys(variable for variable in found if variable is not None))

    def origin(self, output: Output) -> Output:
        """The output that this one is a copy of, behind Identity and what else only passes tensors on."""
        node, port = output
        while (kind := self.kinds[node]) is not None and self.sources[node]:
            record = kind.op_def.record
            if record.passes_on:
                node, port = self.sources[node][0]
            elif record.regroups and len(self.sources[node]) == len(kind.output_types):
                node, port = self.sources[node][port]
            else:
                break
        return node, port

    # Walks

    @staticmethod
    def reached(start: Iterable[int], following: Sequence[Iterable[int]]) -> set[int]:
        """The nodes that some nodes lead to, themselves included."""
        seen = set(start)
        stack = list(seen)
        while stack:
            for node in following[stack.pop()]:
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
        return seen

    def descendants(self, start: Iterable[int], stop: Callable[[int, int], bool] | None = None) -> set[int]:
        """The nodes whose values depend on those of some nodes, these included.

        `stop(node, consumer)` says that a value is not followed along an edge.
        """
        seen = set(start)
        stack = list(seen)
        while stack:
            node = stack.pop()
            for consumer in self.value_readers(node):
                if consumer not in seen and not (stop and stop(node, consumer)):
                    seen.add(consumer)
                    stack.append(consumer)
        return seen

    def value_readers(self, node: int) -> list[int]:
        """The nodes that a value goes to next: consumers, and reads of the variable that the node updates."""
        readers = [reader for reader, _ in self.readers[node]]
        return readers + self._later_reads[node] if node in self._later_reads else readers

    @cached_property
    def value_sources(self) -> list[list[int]]:
        """By node those whose values it depends on: producers of its inputs, and updates of what it reads."""
        found = [[src for src, _ in sources] for sources in self.sources]
        for update, reads in self._later_reads.items():
            for read in reads:
                found[read].append(update)
        return found

    @cached_property
    def _later_reads(self) -> dict[int, list[int]]:
        found = {update: self.read_after(update) for update in self.updates}
        return {update: reads for update, reads in found.items() if reads}


def is_handle(dtype: DataType) -> bool:
    """Whether a tensor of that type stands for a variable."""
    return dtype is DataType.RESOURCE or is_ref(dtype)


def output_named(graph: Graph, name: str) -> Output:
    """The node and port of a tensor; NotFoundError for a name that the graph does not have."""
    tensor = parse_tensor_name(name)
    node = graph.find_id(tensor.node)
    if node is None or not 0 <= tensor.index < len(graph.node_properties(node).output_types):
        raise NotFoundError(f"the graph has no tensor {name!r}; name a node or one of its outputs, as in 'loss:0'")
    return node, tensor.index
