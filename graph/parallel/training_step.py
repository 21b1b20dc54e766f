"""What a training step on one device consists of: the forward pass, the backward pass, the update of the variables.

    x --MatMul--> y --> loss          forward: what the loss is computed from
         w ^      |
                  v
    d_w = MatMul(x, d_y)              backward: what updates depend on, and the batch, and the loss does not
    norm = sqrt(sum(d_w ** 2))        update region: the end of it, which reads no activation any more: clipping, decay,
    w -= rate * d_w / norm            the optimizer

What enters the update region are the gradients, here d_w: the tensors that replicas add up, that micro-batches
accumulate and that sharded optimizers scatter. They are found by what has rows, or a caller names them. An update may
be an op of an optimizer, or arithmetic and an assignment. Assignments that depend on the batch but on no gradient, such
as those of moving averages, are statistics.

An embedding is updated by rows. Its gradient is a pair of tensors, indices and rows, which replicas join:

    Unique(ids), UnsortedSegmentSum(d_rows, ...) -> ResourceScatterSub     ids and d_rows are gradients, to be joined
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import InvalidArgumentError
from ..edge_ends import Output
from ..graph import Graph
from ..ops.record import Updates
from .batch_shapes import BatchShapes
from .batch_size import BatchSize
from .update_region import Region, region_behind, update_region
from .value_flow import ValueFlow, output_named


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """The parts of a training step, by node ids of its graph."""

    graph: Graph
    flow: ValueFlow
    shapes: BatchShapes
    batch: tuple[int, ...]
    """the placeholders of the batch"""
    loss: Output
    """what computes it, where the named tensor only passes it on"""
    forward: frozenset[int]
    """nodes that the value of the loss depends on, and the loss"""
    dependent: frozenset[int]
    """nodes whose values depend on the batch, or on constants that have a row for each of it"""
    updates: tuple[int, ...]
    """nodes that change variables by gradients, in the order of the step"""
    statistics: tuple[int, ...]
    """nodes that change variables by the batch, but by no gradient: moving averages, metrics"""
    backward: frozenset[int]
    """nodes between the batch and the updates that the loss does not depend on, the updates included"""
    region: frozenset[int]
    """the update region: nodes of `backward` that run after the last activation was read"""
    gradients: tuple[Output, ...]
    """the tensors that enter the region and depend on the batch, in the order of the backward pass"""
    joined: frozenset[Output]
    """those of `gradients` that replicas join along axis 0 rather than add: rows and their indices"""

    @property
    def variables(self) -> Mapping[int, tuple[int, ...]]:
        """By the node that makes a variable those of `updates` that change it: parameters, slots, averages of them."""
        found: dict[int, list[int]] = {}
        for update in self.updates:
            for variable in self.flow.variables(update):
                found.setdefault(variable, []).append(update)
        return {variable: tuple(updates) for variable, updates in found.items()}

    @property
    def parameters(self) -> tuple[int, ...]:
        """Those of `variables` that the loss depends on."""
        return tuple(v for v in self.variables if v in self.forward)


def training_step(
    graph: Graph,
    *,
    batch: Sequence[str],
    loss: str,
    outputs: Iterable[str] = (),
    shapes: BatchShapes | None = None,
    gradients: Sequence[str] | None = None,
) -> TrainingStep:
    """Finds the parts of the training step of a graph without calls of functions around it.

    `batch` names placeholders whose axis 0 is the batch; `outputs` are tensors besides the loss that will have the
    value of the whole batch, so that what reads only them is no statistic; `shapes` says which tensors have rows, if
    that is known. `gradients` names the tensors that enter the update region; without it they are found by what has
    rows. Raises NotFoundError for an unknown name, InvalidArgumentError if the loss does not depend on the batch, or no
    update does; UnimplementedError for an update that reads an activation itself, or what no gradient is named for.
    """
    flow = ValueFlow(graph)
    fed = tuple(output_named(graph, name)[0] for name in batch)
    if not fed:
        raise InvalidArgumentError("no placeholder of the batch is named; name at least one")
    for name, node in zip(batch, fed, strict=True):
        if not graph.node_properties(node).op_def.record.is_placeholder:
            raise InvalidArgumentError(f"{name!r} is no placeholder; name what is fed", node=graph.node_name(node))
    end = flow.origin(output_named(graph, loss))
    forward = flow.reached([end[0]], flow.value_sources)
    shapes = shapes or BatchSize(graph, batch).shapes
    dependent = flow.descendants((*fed, *shapes.row_constants))
    if end[0] not in dependent:
        raise InvalidArgumentError(f"the loss {loss!r} does not depend on {_listed(batch)}; name what is fed to it")
    updates, statistics = _sorted_updates(flow, forward, dependent)
    if not updates:
        raise InvalidArgumentError(
            f"no variable is updated by a gradient of {loss!r}; give the graph of a training step"
        )
    named = None if gradients is None else [output_named(graph, name) for name in gradients]
    ends = [*updates, *(node for node, _ in named or ())]
    backward = (flow.reached(ends, flow.value_sources) & dependent) - forward
    whole = {end, *(flow.origin(output_named(graph, name)) for name in outputs)}
    parts = Region(forward & dependent, backward, updates)
    region = update_region(flow, shapes, parts) if named is None else region_behind(flow, named, parts)
    return TrainingStep(
        graph,
        flow,
        shapes,
        fed,
        end,
        frozenset(forward),
        frozenset(dependent),
        tuple(sorted(updates, key=flow.position.__getitem__)),
        tuple(_truly(flow, statistics, fed, whole, backward)),
        frozenset(backward),
        frozenset(region.nodes),
        tuple(sorted(region.gradients, key=lambda output: (flow.position[output[0]], output[1]))),
        frozenset(region.joined),
    )


def _sorted_updates(flow: ValueFlow, forward: set[int], dependent: set[int]) -> tuple[list[int], list[int]]:
    """The updates that depend on the batch: those by gradients, and the others.

    Parameters are variables that the loss depends on, or that an optimizer's op updates. What is computed for them, and
    only for updates, is the backward pass; other variables that depend on it (slots, averages of parameters, counters)
    are updated by gradients too.
    """
    changing = [node for node in flow.updates if node in dependent]
    sure = [node for node in changing if _by_gradient(flow, node, forward, dependent)]
    backward = (flow.reached(sure, flow.value_sources) & dependent) - forward
    after = flow.descendants(backward)
    updates = [node for node in changing if node in after]
    return updates, [node for node in changing if node not in after]


def _by_gradient(flow: ValueFlow, node: int, forward: set[int], dependent: set[int]) -> bool:
    kind = flow.kinds[node]
    assert kind is not None
    if kind.op_def.record.updates is Updates.GRADIENT:
        return True
    is_new = any(src in dependent and src not in forward for src, _ in flow.sources[node])
    return is_new and any(variable in forward for variable in flow.variables(node))


def _truly(
    flow: ValueFlow, statistics: list[int], fed: tuple[int, ...], whole: set[Output], backward: set[int]
) -> list[int]:
    """The statistics that depend on the batch by more than the outputs of the whole batch."""
    if not statistics:
        return []
    nodes = {node for node, _ in whole}
    left = flow.descendants(fed, stop=lambda node, consumer: node in nodes and consumer not in backward)
    return [node for node in statistics if node in left]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
