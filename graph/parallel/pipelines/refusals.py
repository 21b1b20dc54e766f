"""Training steps that a pipeline refuses, because micro-batches would not give what the whole batch does."""

from __future__ import annotations

from ....errors import InvalidArgumentError, UnimplementedError
from ...ops.record import CONTROL_FLOW, State
from .region import MicroBatchRegion

_TRAINS = "is_training"  # the attr of ops that normalise by statistics of the batch


def check_region(region: MicroBatchRegion, microbatches: int, *, is_local: bool) -> None:
    """Raises UnimplementedError for a node that micro-batches cannot run, InvalidArgumentError for their number.

    Unless `is_local`, an op that normalises by statistics of the batch is one.
    """
    _check_input(region)
    _check_batch(region, microbatches)
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
        elif not is_local and _TRAINS in node.attrs and node.attrs[_TRAINS]:
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
        fitting = [count for count in (rows // microbatches * microbatches, -(-rows // microbatches) * microbatches) if count]
        divisors = [count for count in range(1, rows + 1) if rows % count == 0]
        nearest = min(divisors, key=lambda count: (abs(count - microbatches), count))
        raise InvalidArgumentError(
            f"the {rows} rows of {region.name(number)!r} do not divide into {microbatches} micro-batches; use a batch of "
            f"{' or '.join(map(str, fitting))} rows, or {nearest} micro-batches",
            node=region.name(number),
        )
