"""What a pipeline cuts into stages: the nodes of a training step that run once per micro-batch.

forward     nodes between the batch and the loss
backward    nodes between these and the gradients
gradients   the tensors that leave the backward pass; the updates, outside, read what they add up to
observed    other tensors that nodes outside read: outputs per row, statistics
dropped     nodes outside that read what no node computes any more
outside     all other nodes, which run once per step: variables, their reads, updates
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from ...columns import SINK_ID
from ...dtypes import DataType
from ...edge_ends import Output
from ...gradients.forward import DIFFERENTIABLE
from ...graph import Graph
from ...ops.record import NodeClass
from ...printer import topological_order
from ..training_step import TrainingStep
from .seats import is_number

_LARGEST_CONSTANT_BYTES = 4096  # of the attrs; a larger constant is an argument


class Joining(Enum):
    """How the parts of a tensor that micro-batches compute make the whole one."""

    SUMMED = "summed"
    """added up; averaged if the loss is a mean over rows"""
    AVERAGED = "averaged"
    """averaged, whatever the loss is"""
    ROWS = "rows"
    """put one behind the other along axis 0"""
    SCALED_ROWS = "scaled rows"
    """the same, and divided by the number of micro-batches if the loss is a mean: rows of a gradient"""


@dataclass(frozen=True)
class MicroBatchRegion:
    """The nodes of one training step by node id; `forward` and `backward` are in topological order, lowest id first."""

    whole: Graph
    """the graph for the whole batch, of which everything outside is"""
    step: TrainingStep
    """that of a micro-batch: constants that follow the size of the batch are others, and may be new nodes"""
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    gradients: Mapping[Output, Joining]
    observed: Mapping[Output, Joining] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()
    variable_of: Mapping[Output, int] = field(default_factory=dict)
    """by gradient the node of its variable, where somebody said so"""
    number_step: int = 1
    """by how much the number that a micro-batch gives its collectives is above that of the one before it"""
    _copied: dict[int, bool] = field(default_factory=dict)

    @property
    def graph(self) -> Graph:
        """The graph of a micro-batch."""
        return self.step.graph

    @cached_property
    def forward_nodes(self) -> frozenset[int]:
        """The forward nodes, as a set."""
        return frozenset(self.forward)

    @cached_property
    def nodes(self) -> frozenset[int]:
        """All nodes that run once per micro-batch."""
        return frozenset((*self.forward, *self.backward))

    @cached_property
    def batch(self) -> frozenset[int]:
        """The placeholders that are split along axis 0."""
        return frozenset(self.step.batch)

    def sources(self, node: int) -> list[Output]:
        """The outputs that a node reads, by port."""
        return self.step.flow.sources[node]

    def readers(self, node: int) -> list[int]:
        """The nodes that read an output of a node."""
        return [reader for reader, _ in self.step.flow.readers[node]]

    def before(self, node: int) -> list[int]:
        """The nodes of the region that a node reads or waits for."""
        edges = self.graph.in_edge_ids(node)
        return [source for source in (self.graph.edge_ends(edge)[0] for edge in edges) if source in self.nodes]

    def is_number(self, node: int) -> bool:
        """Whether a node is the number of the micro-batch, which every call has its own of."""
        return is_number(self.graph.node_properties(node))

    def is_copied(self, node: int) -> bool:
        """Whether functions have a copy of a node outside, so that what is known of its value is known there.

        Small constants, those that follow the size of the batch, and what is computed of shapes.
        """
        if node not in self._copied:
            self._copied[node] = node not in self.nodes and node not in self.batch and self._is_known(node)
        return self._copied[node]

    def _is_known(self, node: int) -> bool:
        view = self.graph.node(node)
        if (
            not view.is_op
            or view.op_def.is_stateful
            or any(edge.is_control and edge.src.is_op for edge in view.in_edges())
        ):
            return False
        if view.node_class is NodeClass.CONSTANT:
            if is_number(view.properties):
                return False
            follows = node >= self.whole.num_node_ids or view.properties != self.whole.node_properties(node)
            return follows or sum(map(len, view.properties.entries)) <= _LARGEST_CONSTANT_BYTES
        if view.op_def.record.reads_shape:
            return not any(source in self.nodes or source in self.batch for source, _ in self.sources(node))
        are_sizes = all(dtype in (DataType.INT32, DataType.INT64) for dtype in view.output_types)
        return (
            are_sizes and bool(self.sources(node)) and all(self.is_copied(source) for source, _ in self.sources(node))
        )

    def name(self, node: int) -> str:
        """The name of a node."""
        return self.graph.node_name(node)


def micro_batch_region(whole: Graph, step: TrainingStep) -> MicroBatchRegion:
    """The region of a training step, as far as its nodes and gradients go."""
    fed = frozenset(step.batch)
    forward = (step.forward & step.dependent) - fed
    backward = step.backward - step.region - forward - fed
    for more in (_of_part_size(whole, step, forward | backward), _between(step, forward | backward)):
        leads_to = _reached_backwards(step, forward)
        forward |= more & leads_to
        backward |= more - leads_to
    order = topological_order(step.graph)
    return MicroBatchRegion(
        whole,
        step,
        tuple(node for node in order if node in forward),
        tuple(node for node in order if node in backward),
        {gradient: _joining(step, gradient) for gradient in step.gradients if gradient[0] not in fed},
    )


def _of_part_size(whole: Graph, step: TrainingStep, nodes: frozenset[int]) -> frozenset[int]:
    """Nodes outside that the region reads and whose values have the size of a micro-batch, such as `Tile(one, [rows])`.

    Constants are not among them: functions have copies of those.
    """
    if whole.num_node_ids == step.graph.num_node_ids and all(
        a == b for a, b in zip(whole.all_properties(), step.graph.all_properties(), strict=True)
    ):
        return frozenset()
    sized = set[int]()
    for node in step.flow.order:
        if node <= SINK_ID:
            continue
        is_new = node >= whole.num_node_ids or whole.node_properties(node) != step.graph.node_properties(node)
        if is_new or any(source in sized for source, _ in step.flow.sources[node]):
            sized.add(node)
    known = nodes.union(step.batch)
    found, waiting = set[int](), list(nodes)
    while waiting:
        for source, _ in step.flow.sources[waiting.pop()]:
            if source in sized and step.flow.sources[source] and source not in known and source not in found:
                found.add(source)
                waiting.append(source)
    return frozenset(found)


def _between(step: TrainingStep, nodes: frozenset[int]) -> frozenset[int]:
    """Nodes outside that some node of the region comes before, and another one after, by control edges."""
    after = step.flow.reached(nodes, step.flow.after)
    return frozenset(after & _reached_backwards(step, nodes)) - nodes


def _reached_backwards(step: TrainingStep, nodes: Collection[int]) -> set[int]:
    """The nodes that come before some nodes, these included."""
    graph, seen = step.graph, set(nodes)
    stack = list(nodes)
    while stack:
        for edge in graph.in_edge_ids(stack.pop()):
            source = graph.edge_ends(edge)[0]
            if source not in seen:
                seen.add(source)
                stack.append(source)
    return seen


def _joining(step: TrainingStep, gradient: Output) -> Joining:
    if gradient not in step.joined:
        return Joining.SUMMED
    return Joining.SCALED_ROWS if _is_real(step, gradient) else Joining.ROWS


def _is_real(step: TrainingStep, output: Output) -> bool:
    return step.graph.node_properties(output[0]).output_types[output[1]] in DIFFERENTIABLE
