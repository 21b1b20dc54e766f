"""What of a training step works on shards: variables, gradients, and the nodes between them.

    w/read = Identity(w)      g = gradient of w     (the backward pass)
    ------------------------------------------------ gradient boundary
    sum = L2Loss(g)           a scalar: the sum over all shards
    scale = f(sum)            whole on every replica
    h = Mul(g, scale)         elementwise: a shard, made from shards
    d = Mul(w/read, decay)    a shard of what is read, times a scalar
    p = MatMul(g, g)          neither: g is gathered, p is whole
    ApplyAdam(w, m, v, ..., h)    w, m and v are variables of shards

The region is what updates depend on, without what the gradients and the loss depend on. Inside it one rule decides from
inputs to outputs: an elementwise op makes a shard if an input is one and the others have its shape or one element.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from ...dtypes import Shape, Shapes, is_ref
from ...edge_ends import Output
from ...graph import Graph
from ...ops.properties import NodeProperties
from ...ops.record import NodeClass, ReadsHandle
from ..value_flow import ValueFlow, is_handle
from .variables import ShardedVariable, find_variables

_ELEMENTWISE = "elementwise"


class SharedOut(NamedTuple):
    """The variables that are shared out, and the gradients of which shards are enough."""

    variables: Collection[int]
    gradients: Collection[Output]


class ShardRegion:
    """The part of a training step that can work on shards."""

    def __init__(
        self,
        flow: ValueFlow,
        shapes: Mapping[str, Shapes],
        updates: Sequence[int],
        boundary: Sequence[Output],
        loss: int,
        outputs: Sequence[int],
        among: SharedOut | None = None,
    ) -> None:
        """`boundary` are tensors of the backward pass that enter the updates, `updates` all nodes that write.

        `shapes` are known shapes by node name; `outputs` are other nodes that every replica computes. Variables and
        gradients that are not `among` some stay whole.
        """
        self.flow = flow
        self.graph: Graph = flow.graph
        names = self.graph.names()
        self._shapes = [shapes.get(str(name), ()) for name in names]
        self.earlier = _reversed(flow.after)
        early = flow.reached([loss, *(node for node, _ in boundary)], self.earlier)
        wanted = flow.reached(outputs, self.earlier)
        entering = {reader for node, port in boundary for reader in self._readers(node, port)} - early
        behind = flow.reached(entering | (flow.reached(updates, self.earlier) - early), flow.after)
        self.before = early | (wanted - behind)
        """what the loss and the gradients depend on, and outputs that see no gradient"""
        self.nodes = flow.reached(updates, self.earlier) - self.before
        """the region"""
        self.beside = (wanted & behind) - self.nodes - self.before
        """what outputs that see gradients need besides; it works on whole tensors"""
        self.order = [node for node in flow.order if node in self.nodes]
        writing = [node for node in self.order if self.kind(node).op_def.record.updates is not None]
        self.updates = dict.fromkeys(writing)
        """what writes variables in it: also what no gradient enters, such as decay that is assigned before"""
        own = boundary if among is None else [output for output in boundary if output in among.gradients]
        self.seeds = [output for output in own if self.is_cuttable(output)]
        """gradients of which every replica needs a shard"""
        found = find_variables(flow, self.shape, writing, self.before, self.nodes, among and among.variables)
        self.variables = found.sharded
        self.whole = found.whole
        """why other variables that are updated stay whole, by name"""
        self.sharded: dict[Output, tuple[int, ...]] = {}
        """outputs of the region that are shards when their inputs are, with the shape of the whole"""
        for node in self.order:
            self._decide(node)
        self._keep_useful()

    def _readers(self, node: int, port: int) -> list[int]:
        return [reader for output, reader, _ in self.outputs_read(node) if output == port]

    def is_step(self, node: int) -> bool:
        """Whether every replica runs a node in each step."""
        return node in self.before or node in self.nodes or node in self.beside

    def shape(self, output: Output) -> Shape:
        """The shape of a whole tensor as far as it is known."""
        shapes = self._shapes[output[0]]
        return shapes[output[1]] if output[1] < len(shapes) else None

    def is_cuttable(self, output: Output) -> bool:
        """Whether a tensor has a known shape, and more than one element."""
        shape = self.shape(output)
        return shape is not None and None not in shape and prod(map(int, shape)) > 1  # type: ignore[arg-type]

    def is_single(self, output: Output) -> bool:
        """Whether a tensor has one element for certain."""
        shape = self.shape(output)
        return shape is not None and all(size == 1 for size in shape)

    def kind(self, node: int) -> NodeProperties:
        """Op and attrs of a node."""
        return self.graph.node_properties(node)

    def outputs_read(self, node: int) -> list[tuple[int, int, int]]:
        """Who reads the outputs of a node: (output, consumer, port)."""
        sources = self.flow.sources
        return [(sources[reader][port][1], reader, port) for reader, port in self.flow.readers[node]]

    @cached_property
    def conditional(self) -> set[int]:
        """Nodes that may not run, or are in loops: those behind a Switch or Enter."""
        opens = (NodeClass.SWITCH, NodeClass.ENTER)
        flags = self.graph.flags(lambda kind: kind.op_def.record.node_class in opens)
        return self.flow.reached(np.flatnonzero(flags).tolist(), self.flow.after)

    def variable_of(self, node: int, port: int = 0) -> ShardedVariable | None:
        """The sharded variable whose handle a node gets directly."""
        sources = self.flow.sources[node]
        return self.variables.get(sources[port][0]) if port < len(sources) else None

    def read_of(self, output: Output) -> ShardedVariable | None:
        """The sharded variable that a tensor is the value of."""
        node, _ = output
        if node in self.variables:
            return self.variables[node]
        kind = self.kind(node)
        record = kind.op_def.record
        if record.reads_handle is ReadsHandle.VALUE:
            return self.variable_of(node)
        source = self.flow.sources[node][0][0] if record.passes_on and self.flow.sources[node] else -1
        variable = self.variables.get(source)
        return variable if variable is not None and variable.is_reference and not is_ref(kind.input_types[0]) else None

    def is_available(self, output: Output) -> bool:
        """Whether a shard of a tensor costs nothing more: one of the region, of a gradient, or of a variable."""
        return output in self.sharded or output in self.seeds or self.read_of(output) is not None

    def reduces(self, node: int) -> bool:
        """Whether a node makes one element of a tensor, so that parts of it can be merged."""
        kind = self.kind(node)
        return bool(kind.op_def.record.merges_by) and self.is_single((node, 0)) and node in self.nodes

    # Which tensors

    def _decide(self, node: int) -> None:
        """Notes the outputs of a node that are shards."""
        kind = self.kind(node)
        record = kind.op_def.record
        if node in self.variables:
            return
        if node in self.updates:
            if kind.output_types and self.variable_of(node) is not None:
                self.sharded[node, 0] = self.variables[self.flow.sources[node][0][0]].shape
            return
        if self.read_of((node, 0)) is not None:
            self.sharded[node, 0] = self.read_of((node, 0)).shape  # type: ignore[union-attr]
            return
        shape = self._common_shape(node) if _is_elementwise(kind) else None
        if shape is not None:
            outputs = range(2) if record.node_class is NodeClass.SWITCH else range(1)
            self.sharded.update({(node, port): shape for port in outputs})

    def _common_shape(self, node: int) -> tuple[int, ...] | None:
        """The shape of the inputs of an elementwise node of which one is a shard; None if that makes no shard."""
        sources = self.flow.sources[node]
        shape = self.shape((node, 0))
        if not any(map(self.is_available, sources)) or not self.is_cuttable((node, 0)) or shape is None:
            return None
        if any(not self.is_single(source) and self.shape(source) != shape for source in sources):
            return None
        return tuple(int(size) for size in shape if size is not None)

    def _keep_useful(self) -> None:
        """Leaves whole what leads to no update of a variable of shards: a gradient of which no shard is needed."""
        useful = {output for output in self.sharded if output[0] in self.updates or self.read_of(output)}
        for node in reversed(self.order):
            if (node in self.updates and self.variable_of(node)) or ((node, 0) in useful and node not in self.updates):
                useful.update(self.flow.sources[node])
        self.sharded = {output: shape for output, shape in self.sharded.items() if output in useful}
        self.seeds = [output for output in self.seeds if output in useful]

    def target(self, seed: Output) -> ShardedVariable | None:
        """The parameter of a gradient: the first that is updated behind it, through shards alone."""
        stack, seen = [seed[0]], {seed[0]}
        while stack:
            node = stack.pop()
            variable = self.variable_of(node) if node in self.updates else None
            if variable is not None and variable.is_parameter:
                return variable
            for reader in self.flow.value_readers(node):
                is_on_way = (reader, 0) in self.sharded or (reader in self.updates and self.variable_of(reader))
                if is_on_way and reader not in seen:
                    seen.add(reader)
                    stack.append(reader)
        return None


def _is_elementwise(kind: NodeProperties) -> bool:
    """Whether element i of the first output depends on elements i of the inputs alone, and on inputs of one element."""
    record = kind.op_def.record
    if any(map(is_handle, kind.input_types)):
        return False
    if record.node_class in (NodeClass.SWITCH, NodeClass.MERGE) or record.passes_on:
        return True
    return record.in_place and record.family == _ELEMENTWISE


def _reversed(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """By node those before it."""
    earlier: list[list[int]] = [[] for _ in after]
    for node, consumers in enumerate(after):
        for consumer in consumers:
            earlier[consumer].append(node)
    return earlier
