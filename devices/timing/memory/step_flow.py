"""The data flow of a step among its distinct nodes: what goes from which node to which, in the order in which they ran.

A function that runs once a micro-batch has as many rows as it has runs, all of which are for the same. So rows of one
node are one here, and a step of 64 micro-batches is as large as one of two. For two runs of y = f(x), of which the sums
are added up:

    rows      0 x   1 f/MatMul   2 f/MatMul   3 AddN         (1 and 2 are runs of one node)
    nodes     0 x   1 f/MatMul                2 AddN         outputs are those of the first row: 0, 1 and 3
    edges     0 -> 1   1 -> 2

Views are passed over: who reads a view of an output reads the output. So the results of a call are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set as AbstractSet

import numpy as np

from ....graph.analysis.node_columns import NodeColumns
from ....graph.arrays import Flags, Numbers, distinct, first_seen, inverse, owners, starts_of
from ....graph.dtypes import FLOATS, base_type, item_size
from ....graph.ops.properties import NodeProperties
from .tensors import Tensors, resolved
from .times import Times

_LATE = 1 << 62
"""after all that ran"""


class StepFlow:
    """Nodes are numbered in the order in which they first started; outputs as in `tensors`, those of the first rows."""

    def __init__(self, graph: NodeColumns, tensors: Tensors, times: Times, node_of_row: Numbers) -> None:
        """`node_of_row` has equal numbers for rows of one node."""
        self.graph = graph
        seen = first_seen(node_of_row)
        count = len(seen.first)
        start_ns, order = np.full(count, _LATE), np.full(count, _LATE)
        ran = times.ran()
        np.minimum.at(start_ns, seen.number[ran], times.start_ns[ran])
        np.minimum.at(order, seen.number[ran], times.order[ran])
        by_time = np.lexsort((order, start_ns))
        place = inverse(by_time)
        self.count = count
        self.node_of_row: Numbers = place[seen.number]
        self.row: Numbers = seen.first[by_time]
        """by node its first row"""
        self.kinds: list[NodeProperties] = [graph.kinds[k] for k in graph.kind_of[self.row].tolist()]
        self._first: list[int] = tensors.first[self.row].tolist()
        self._like_first = tensors.first[self.row[self.node_of_row]] - tensors.first
        self._origin = _behind_views(graph, tensors)
        self._row_of_output, self._first_of_row = tensors.node, tensors.first
        self._node_of_output: Numbers = self.node_of_row[tensors.node]
        self._width, self._is_float = _types(graph, tensors)
        self._elements = tensors.size_bytes // np.maximum(self._width, 1)
        self._find_edges(tensors)

    def _find_edges(self, tensors: Tensors) -> None:
        """Who reads which outputs: data, and what is received of what is sent; each edge once."""
        graph = self.graph
        received = np.flatnonzero(graph.sender >= 0)
        source = np.concatenate(
            [tensors.first[graph.input_src] + graph.input_output, tensors.first[graph.sender[received]]]
        )
        # A send has no output: what it sends is what its receive reads.
        sent = graph.input_start[graph.sender[received]]
        source[len(graph.input_src) :] = tensors.first[graph.input_src[sent]] + graph.input_output[sent]
        reader = self.node_of_row[np.concatenate([owners(np.diff(graph.input_start)), received])]
        keys = distinct(self.of_first(source) * np.int64(self.count) + reader)
        output, reader = np.divmod(keys, self.count)
        node = self._node_of_output[output]
        by_reader = np.argsort(reader, kind="stable")
        self._sources: list[int] = output[by_reader].tolist()
        self._source_start: list[int] = starts_of(reader, self.count).tolist()
        by_node = np.argsort(node, kind="stable")
        self._edges = list(zip(node[by_node].tolist(), reader[by_node].tolist(), strict=True))
        self._back = list(zip(reader[by_reader[::-1]].tolist(), node[by_reader[::-1]].tolist(), strict=True))
        self._readers: list[int] = reader.tolist()  # keys are in order of outputs
        self._reader_start: list[int] = starts_of(output, len(self._row_of_output)).tolist()

    def of_first(self, outputs: Numbers) -> Numbers:
        """The outputs of the first rows of their nodes, behind views."""
        outputs = self._origin[outputs]
        return outputs + self._like_first[self._row_of_output[outputs]]

    def node(self, output: int) -> int:
        """The node of an output."""
        return int(self._node_of_output[output])

    def sources(self, node: int) -> list[int]:
        """The outputs that a node reads."""
        return self._sources[self._source_start[node] : self._source_start[node + 1]]

    def inputs(self, node: int) -> list[int]:
        """The outputs that the first run of a node reads, by port."""
        row = int(self.row[node])
        read = [int(self._first_of_row[source]) + output for source, output in self.graph.inputs_of(row)]
        inputs: list[int] = self.of_first(np.array(read, np.int64)).tolist()
        return inputs

    def readers(self, output: int) -> list[int]:
        """The nodes that read an output."""
        return self._readers[self._reader_start[output] : self._reader_start[output + 1]]

    def outputs(self, node: int) -> range:
        """The outputs of a node."""
        first = self._first[node]
        return range(first, first + len(self.kinds[node].output_types))

    def is_float(self, output: int) -> bool:
        """Whether an output has floating-point numbers."""
        return bool(self._is_float[output])

    def width(self, output: int) -> int:
        """The bytes of an element of an output; 0 of a handle."""
        return int(self._width[output])

    def elements(self, output: int) -> int:
        """How many elements an output has."""
        return int(self._elements[output])

    def forward(self, values: list[int]) -> list[int]:
        """By node the largest of its value and those of all nodes that lead to it; `values` is changed."""
        return _largest(values, self._edges)

    def backward(self, values: list[int]) -> list[int]:
        """By node the largest of its value and those of all nodes that it leads to; `values` is changed."""
        return _largest(values, self._back)

    def leading_to(self, ends: Iterable[int], stop: AbstractSet[int]) -> set[int]:
        """The nodes that lead to some, with these, on ways that pass none of `stop`."""
        seen = set(ends) - stop
        waiting = list(seen)
        while waiting:
            new = {self.node(output) for output in self.sources(waiting.pop())} - seen - stop
            seen |= new
            waiting += new
        return seen


def _types(graph: NodeColumns, tensors: Tensors) -> tuple[Numbers, Flags]:
    """By output the bytes of an element, and whether it is a floating-point number."""
    types = [base_type(dtype) for kind in graph.kinds for dtype in kind.output_types]
    counts = np.array([len(kind.output_types) for kind in graph.kinds], np.int64)
    entry = (np.cumsum(counts) - counts)[graph.kind_of[tensors.node]] + tensors.port
    width = np.array([item_size(dtype) for dtype in types], np.int64)
    return width[entry], np.array([dtype in FLOATS for dtype in types], np.bool_)[entry]


def _behind_views(graph: NodeColumns, tensors: Tensors) -> Numbers:
    """By output the one of which it is a view, or itself; a list to which something was added is no view here."""
    origin = np.arange(len(tensors.node))
    records = [kind.op_def.record for kind in graph.kinds]
    is_view = np.array(
        [r.is_view and r.reads_handle is None and r.holding is None and not r.is_transfer for r in records], np.bool_
    )[graph.kind_of]
    regroups = np.array([r.regroups for r in records], np.bool_)[graph.kind_of]
    node, port = tensors.node, np.where(regroups[tensors.node], tensors.port, 0)
    views = np.flatnonzero(is_view[node] & (port < np.diff(graph.input_start)[node]))
    inputs = graph.input_start[node[views]] + port[views]
    origin[views] = tensors.first[graph.input_src[inputs]] + graph.input_output[inputs]
    return resolved(origin)


def _largest(values: list[int], edges: Sequence[tuple[int, int]]) -> list[int]:
    """Takes values along edges, once where their order is that of the flow, and again behind those that go back."""
    is_changed = True
    while is_changed:
        is_changed = False
        for this, that in edges:
            if values[this] > values[that]:
                values[that] = values[this]
                is_changed = True
    return values
