"""The tensors of a body: what each output of a node occupies, whose buffer it has, and which nodes read it.

Nothing here depends on times, so it is found out once for a body, however often that runs. Outputs are numbered
through, those of node 0 first. For x (fed) -> a = Exp(x) -> b = Reshape(a) -> c = Exp(b), with one output each:

    output        0 x   1 a   2 b   3 c
    shares        0     1     1     3         b is a view of a, the others have buffers of their own
    reads         (0, by a)   (1, by b)   (2, by c)
    may replace   (1, 0)      (3, 2)          an elementwise op may write into an input: `buffers.py` asks the times

What a Merge passes on, and what a read of a variable sees, depends on what happened before it: these are listed apart.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np

from ....graph.analysis.node_columns import NodeColumns
from ....graph.arrays import Flags, Integers, Numbers, first_seen, owners
from ....graph.columns import Ids
from ....graph.dtypes import DataType, Shapes
from ....graph.ops.record import RECVS, Holding
from ...device import Device
from .holder_ops import HolderOp
from .kinds import OWN, PLACES, MemoryKind, memory_kind


class OutputShapes(Protocol):
    """The shapes of all outputs of a graph, inferred or those of a run: node `n` has `distinct[shape_of[n]]`."""

    @property
    def graph(self) -> NodeColumns:
        """The graph."""

    @property
    def distinct(self) -> Sequence[Shapes]:
        """The combinations of shapes, one per output."""

    @property
    def shape_of(self) -> Ids:
        """By node the number of its shapes."""

    def of(self, n: int) -> Shapes:
        """The shapes of the outputs of a node."""


@dataclass(frozen=True, slots=True)
class KnownShapes:
    """Shapes that are known, one by one: a `OutputShapes`."""

    graph: NodeColumns
    distinct: Sequence[Shapes]
    shape_of: Ids

    def of(self, n: int) -> Shapes:
        """The shapes of the outputs of a node."""
        return self.distinct[int(self.shape_of[n])]

    def part(self, graph: NodeColumns, nodes: Ids) -> KnownShapes:
        """The shapes of some nodes; `graph` is the part of the graph that has them, in this order."""
        return KnownShapes(graph, self.distinct, self.shape_of[nodes])


class Pairs(NamedTuple):
    """A relation, row by row: `this[i]` to `that[i]`."""

    this: Numbers
    that: Numbers


class Assignments(NamedTuple):
    """Nodes that give a variable a new content, by row: the node, the handle, the value."""

    node: Numbers
    handle: Numbers
    value: Numbers


class HolderNode(NamedTuple):
    """A node that does something with a holder: the outputs that it reads, the first of its own.

    `copied` is how many elements it copies into the holder, or out of it, and `memory` the memory in which copies are.
    """

    node: int
    op: HolderOp
    inputs: list[int]
    first: int
    copied: int
    memory: int


@dataclass(frozen=True, slots=True)
class Tensors:
    """Columns by output, and relations between outputs and nodes."""

    node: Numbers
    """the node of an output"""
    port: Numbers
    """its number among the outputs of the node"""
    size_bytes: Numbers
    memory: Numbers
    """as `kinds.py` numbers memories"""
    shares: Numbers
    """the output whose buffer it has: itself, or that of which it is a view"""
    is_variable: Flags
    is_fixed: Flags
    """a constant, a variable, or fed: nothing is written into it"""
    is_lasting: Flags
    """there for the whole step"""
    reads: Pairs
    """an output and a node that reads it; a tensor that is copied is read by its receive, which ends with the copy"""
    is_list: Flags
    """a list, or another value that has tensors as elements"""
    returns: Flags
    """by read: whether the reader gives it to the caller"""
    may_replace: Pairs
    """the output of an elementwise op and an input of it of equal type and bytes, in order of outputs and inputs"""
    merges: Pairs
    """the output of a Merge and one that it may pass on"""
    variable_reads: Pairs
    """the output of a read of a variable and the handle"""
    assignments: Assignments
    uses_content: Flags
    """by node: whether it reads or changes the content of the variable whose handle it has"""
    first: Numbers
    """by node: its first output"""
    holders: list[HolderNode]
    """what nodes do with lists, stacks, arrays and queues"""
    variables: dict[Hashable, int]
    """by device, op, container and name: the first output that stands for that variable"""


def tensors_of(shapes: OutputShapes, devices: Sequence[Device], device: Integers, is_copied: Flags) -> Tensors:
    """The tensors of a body.

    By node: the index of its device in `devices`, and whether it is a receive to which bytes are copied; other receives
    have the buffer that was sent.
    """
    return _Planner(shapes, devices, device, is_copied).tensors()


class _Planner:
    """Columns of a body that more than one relation needs.

    `first[n]` is the first output of node n. Input i, counted through all nodes and their ports as in the graph, reads
    output `source[i]` for node `reader[i]`.
    """

    def __init__(self, shapes: OutputShapes, devices: Sequence[Device], device: Integers, is_copied: Flags) -> None:
        self.shapes = shapes
        self.graph = graph = shapes.graph
        self.device = device
        self.kinds, self.kind_of = _kinds(graph, devices, device)
        self.received = np.flatnonzero(graph.sender >= 0)
        self.sent = graph.sender[self.received]
        self.is_copied = is_copied[self.received]
        counts = np.array([len(kind.dtype) for kind in self.kinds], np.int64)
        per_node = counts[self.kind_of]
        self.first = np.cumsum(per_node) - per_node
        self.node = owners(per_node)
        port = np.arange(len(self.node)) - self.first[self.node]
        self._port, self._entry = port, (np.cumsum(counts) - counts)[self.kind_of[self.node]] + port
        self.reader = owners(np.diff(graph.input_start))
        self.source = self.first[graph.input_src] + graph.input_output

    def by_output(self, column: Callable[[MemoryKind], list[int]]) -> Numbers:
        """A list of every kind as a column by output."""
        return np.take(np.array(list(chain.from_iterable(map(column, self.kinds))), np.int64), self._entry)

    def _size_bytes(self) -> Numbers:
        """The bytes of every output: once for nodes of one kind and the same shapes."""
        distinct, kinds = self.shapes.distinct, self.kinds
        seen = first_seen(self.kind_of * np.int64(len(distinct)) + self.shapes.shape_of)
        columns = (column[seen.first].tolist() for column in (self.kind_of, self.shapes.shape_of))
        sizes = [kinds[kind].sizes(distinct[shape]) for kind, shape in zip(*columns, strict=True)]
        counts = np.array(list(map(len, sizes)), np.int64)
        entry = (np.cumsum(counts) - counts)[seen.number[self.node]] + self._port
        return np.take(np.array(list(chain.from_iterable(sizes)), np.int64), entry)

    def by_node(self, fact: Callable[[MemoryKind], bool]) -> Flags:
        """A fact of every kind as a column by node."""
        return np.array(list(map(fact, self.kinds)), np.bool_)[self.kind_of]

    def tensors(self) -> Tensors:
        """All columns."""
        is_variable = self.by_node(lambda k: k.is_variable)[self.node]
        shares = self._shares()
        variables = self._join_variables(is_variable, shares)
        size_bytes, variable_reads = self._size_bytes(), self._inputs_of(lambda k: k.reads_variable)
        # The attr of a handle may leave sizes open; the variable is as large as what is read from it.
        np.maximum.at(size_bytes, shares[variable_reads.that], size_bytes[variable_reads.this])
        copied = self.received[self.is_copied]
        no_copy = np.zeros(len(copied), np.bool_)
        assigns = np.flatnonzero(self.by_node(lambda k: k.takes_over))
        return Tensors(
            node=self.node,
            port=self._port,
            size_bytes=size_bytes,
            memory=len(PLACES) * self.device[self.node] + self.by_output(lambda k: k.on_host),
            shares=resolved(shares),
            is_variable=is_variable,
            is_fixed=self._is_fixed()[self.node],
            is_lasting=self.by_node(lambda k: k.is_lasting)[self.node],
            reads=Pairs(
                np.concatenate([self.source, self._input(self.sent[self.is_copied])]),
                np.concatenate([self.reader, copied]),
            ),
            is_list=self.by_output(lambda k: k.dtype) == DataType.VARIANT,
            returns=np.concatenate([self.by_node(lambda k: k.returns_inputs)[self.reader], no_copy]),
            may_replace=self._may_replace(size_bytes),
            merges=self._inputs_of(lambda k: k.is_merge),
            variable_reads=variable_reads,
            assignments=Assignments(assigns, self._input(assigns), self._input(assigns, 1)),
            uses_content=self.by_node(lambda k: k.uses_content),
            first=self.first,
            holders=self._holders(),
            variables=variables,
        )

    def _input(self, nodes: Integers, port: Integers | int = 0) -> Numbers:
        """What the nodes read at a port."""
        return np.take(self.source, self.graph.input_start[nodes] + port)

    def _inputs_of(self, fact: Callable[[MemoryKind], bool]) -> Pairs:
        """The first output and all inputs of nodes for which a fact holds."""
        inputs = np.flatnonzero(self.by_node(fact)[self.reader])
        return Pairs(self.first[self.reader[inputs]], self.source[inputs])

    def _shares(self) -> Numbers:
        """The output of which each one is a view, one step back; a tensor received in one process is its sender's."""
        port = self.by_output(lambda k: k.shares)
        shares = np.arange(len(port))
        views = np.flatnonzero(port > OWN)
        shares[views] = self._input(self.node[views], port[views])
        shared = ~self.is_copied
        shares[self.first[self.received[shared]]] = self._input(self.sent[shared])
        return shares

    def _holders(self) -> list[HolderNode]:
        nodes = []
        for n in np.flatnonzero(self.by_node(lambda k: k.holder is not None)).tolist():
            op = self.kinds[int(self.kind_of[n])].holder
            assert op is not None
            begin, end = self.graph.input_start[n], self.graph.input_start[n + 1]
            memory = len(PLACES) * int(self.device[n])
            inputs = self.source[begin:end].tolist()
            nodes.append(HolderNode(n, op, inputs, int(self.first[n]), self._copied_elements(n, op), memory))
        return nodes

    def _copied_elements(self, n: int, op: HolderOp) -> int:
        """How many elements a node copies: as many as rows, or as there are pieces; 1 where that is not known."""
        inputs = self.graph.inputs_of(n)
        if op.holding is Holding.TAKES_COPIES:
            sizes = self.shapes.of(n)[op.gives[0]]
        elif op.holding is Holding.PUTS_COPIES:
            source, output = inputs[op.counts if op.counts >= 0 else op.puts[0]]
            sizes = self.shapes.of(source)[output]
        else:
            return 1
        return (sizes[0] or 1) if sizes else 1

    def _is_fixed(self) -> Flags:
        """By node whether nothing is written into its outputs: what the client sends is fed."""
        from_client = self.graph.of_class(*RECVS) & (self.graph.sender < 0)
        return self.by_node(lambda k: k.is_fixed) | from_client

    def _may_replace(self, size_bytes: Numbers) -> Pairs:
        pairs = self._inputs_of(lambda k: k.writes_in_place)
        dtype = self.by_output(lambda k: k.dtype)
        output, of = pairs
        fits = (dtype[output] == dtype[of]) & (size_bytes[output] == size_bytes[of])
        return Pairs(output[fits], of[fits])

    def _join_variables(self, is_variable: Flags, shares: Numbers) -> dict[Hashable, int]:
        """Lets all outputs that stand for one variable share the first of them; returns these by variable.

        Variables of one device, container and shared name are one; the node's name stands in for an empty shared name.
        """
        graph, known = self.graph, dict[Hashable, int]()
        for output in np.flatnonzero(is_variable).tolist():
            n = int(self.node[output])
            attrs = graph.kinds[graph.kind_of[n]].attrs
            name = attrs.get("shared_name") or graph.names[n].encode()
            key = int(self.device[n]), graph.op(n), attrs.get("container"), name
            shares[output] = known.setdefault(key, output)
        return known


def _kinds(graph: NodeColumns, devices: Sequence[Device], device: Integers) -> tuple[list[MemoryKind], Numbers]:
    """The kinds of a body, and the kind of every node."""
    # Transfers that came from a GraphDef differ in their attrs, but not in what they do with memory.
    numbers: dict[object, int] = {}
    alike = [
        numbers.setdefault((kind.op, kind.output_types) if kind.op_def.record.is_transfer else number, number)
        for number, kind in enumerate(graph.kinds)
    ]
    types: dict[str, int] = {}
    type_of = np.array([types.setdefault(each.type, len(types)) for each in devices], np.int64)[device]
    seen = first_seen(np.array(alike, np.int64)[graph.kind_of] * len(types) + type_of)
    names = list(types)
    first = (column[seen.first].tolist() for column in (graph.kind_of, type_of))
    return [memory_kind(graph.kinds[number], names[where]) for number, where in zip(*first, strict=True)], seen.number


def resolved(shares: Numbers) -> Numbers:
    """Follows outputs that share buffers to the one whose buffer it is: `while shares[i] != i: i = shares[i]`.

    Every round doubles the length of the chains that are followed.
    """
    further = shares[shares]
    while not np.array_equal(further, shares):
        shares, further = further, further[further]
    return shares
