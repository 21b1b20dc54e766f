"""Training steps that a pipeline refuses, because micro-batches would not give what the whole batch does."""

from __future__ import annotations

from ....errors import InvalidArgumentError, PartitaError, UnimplementedError
from ...graph import Graph
from ...ops.record import CONTROL_FLOW, State
from ...shape_inference.infer import infer_shapes
from .region import Joining, MicroBatchRegion

_TRAINS = "is_training"  # the attr of ops that normalise by the batch, or by given statistics


def check_region(region: MicroBatchRegion, microbatches: int, *, is_local: bool) -> None:
    """Raises UnimplementedError for a node that micro-batches cannot run, InvalidArgumentError for their number.

    Unless `is_local`, an op that normalises by statistics of the batch is one.
    """
    _check_input(region)
    _check_batch(region, microbatches)
    _check_joined(region)
    updates = set(region.step.flow.updates)
    for number in (*region.forward, *region.backward):
        node = region.graph.node(number)
        why = ""
        if number in updates:
            why = "changes a variable between the batch and the gradients, and would do so once per micro-batch"
        elif node.node_class in CONTROL_FLOW:
            why = "belongs to a loop or conditional of plain nodes, which cannot be part of a function; give the graph "
            why += "with its While and If nodes, before they were lowered"
        elif node.op_def.is_collective or node.op_def.record.is_transfer:
            why = "exchanges tensors with other devices; cut the step into stages first, then make replicas of it"
        elif not is_local and node.op_def.record.normalises_batch and node.attrs.get(_TRAINS, True):
            why = "normalises by statistics of the batch, which micro-batches have each for itself; accept that with "
            why += 'batch_statistics="local"'
        if why:
            raise UnimplementedError(f"node {node.name!r} ({node.op}) {why}", node=node.name, op=node.op)


def _check_input(region: MicroBatchRegion) -> None:
    for number in sorted(region.step.forward):
        node = region.graph.node(number)
        if node.is_op and node.op_def.record.state in (State.QUEUE, State.ITERATOR):
            raise UnimplementedError(
                f"the loss depends on {node.name!r} ({node.op}), a queue or dataset, whose batch cannot be split; feed "
                "the batch through placeholders",
                node=node.name,
                op=node.op,
            )


def _check_batch(region: MicroBatchRegion, microbatches: int) -> None:
    for number in region.step.batch:
        shape = region.step.shapes.of((number, 0))
        rows = shape[0] if shape else None
        if rows is None or rows % microbatches == 0:
            continue
        fitting = [
            count for count in (rows // microbatches * microbatches, -(-rows // microbatches) * microbatches) if count
        ]
        divisors = [count for count in range(1, rows + 1) if rows % count == 0]
        nearest = min(divisors, key=lambda count: (abs(count - microbatches), count))
        raise InvalidArgumentError(
            f"the {rows} rows of {region.name(number)!r} do not divide into {microbatches} micro-batches; use a "
            f"batch of {' or '.join(map(str, fitting))} rows, or {nearest} micro-batches",
            node=region.name(number),
        )


def _check_joined(region: MicroBatchRegion) -> None:
    for (number, port), joining in region.gradients.items():
        if joining is not Joining.SUMMED and not region.step.shapes.has_rows((number, port)):
            name = region.name(number)
            raise UnimplementedError(
                f"{name!r} is computed from the rows of a gradient, before these are those of the whole batch; "
                "clip by the norm of all gradients, or make the gradient dense",
                node=name,
            )


def check_sizes(graph: Graph, region: MicroBatchRegion) -> None:
    """InvalidArgumentError unless the new graph works for the size of batch that its placeholders declare."""
    if all((shape := region.step.shapes.of((node, 0))) and shape[0] is None for node in region.step.batch):
        return
    try:
        infer_shapes(graph)
    except PartitaError as error:
        raise InvalidArgumentError(
            f"the graph is made for one size of batch, and does not work for micro-batches: {error.message}; leave the "
            "size of the batch open when it is made",
            node=error.node,
        ) from None
