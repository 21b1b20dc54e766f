"""Training steps that a pipeline refuses, because micro-batches would not give what the whole batch does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....errors import InvalidArgumentError, UnimplementedError
from ...dtypes import Shape
from ...graph import Graph
from ...node import Node
from ...ops.record import CONTROL_FLOW, State
from ..replicas.row_mixing import mixing_node
from ..value_flow import output_named
from .region import Joining, MicroBatchRegion
from .seats import is_collective

_TRAINS = "is_training"  # the attr of ops that normalise by the batch or by given statistics


def check_region(region: MicroBatchRegion, row_constants: Iterable[int], *, is_local: bool) -> None:
    """Raises UnimplementedError for a node that micro-batches cannot run.

    Those are constants with another row for each of the batch, `row_constants`, and, unless `is_local`, a node that
    uses a value of the whole batch.
    """
    _check_joined(region)
    constant = next(iter(row_constants), None)
    if constant is not None:
        name = region.name(constant)
        raise UnimplementedError(f"constant {name!r} has another row for each of the batch; feed it instead", node=name)
    check_nodes(region)
    mixing = None if is_local else mixing_node(region.step)
    for number in (*region.forward, *region.backward):
        node = region.graph.node(number)
        why = ""
        if is_collective(node.properties):
            why = "exchanges tensors with other devices; cut the step into stages first, then make replicas of it"
        elif not is_local and (number == mixing or _normalises(node)):
            why = "uses a value of the whole batch, and a micro-batch has only that of its rows; accept that with "
            why += 'batch_statistics="local"'
        _refuse(node, why)


def check_nodes(region: MicroBatchRegion) -> None:
    """Raises UnimplementedError for a node that cannot run once per micro-batch, or inside a function."""
    _check_input(region)
    updates = set(region.step.flow.updates)
    for number in (*region.forward, *region.backward):
        node = region.graph.node(number)
        why = ""
        if number in updates:
            why = "changes a variable between the batch and the gradients, and would do so once per micro-batch"
        elif node.node_class in CONTROL_FLOW:
            why = "belongs to a loop or conditional of plain nodes, which cannot be part of a function; give the graph "
            why += "with its While and If nodes, before they were lowered"
        elif node.op_def.record.is_transfer:
            why = "exchanges tensors with other devices; cut the step into stages before it is partitioned"
        _refuse(node, why)


def _refuse(node: Node, why: str) -> None:
    if why:
        raise UnimplementedError(f"node {node.name!r} ({node.op}) {why}", node=node.name, op=node.op)


def _normalises(node: Node) -> bool:
    """Whether a node normalises by the batch, rather than by given statistics."""
    return node.op_def.record.normalises_batch and bool(node.attrs.get(_TRAINS, True))


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


def check_batch(graph: Graph, batch: Sequence[str], microbatches: int) -> None:
    """InvalidArgumentError, with the nearest that does, for a batch that does not divide into micro-batches."""
    for name in batch:
        node, port = output_named(graph, name)
        shape: Shape = graph.node_properties(node).attrs.get("shape") if port == 0 else None
        rows = shape[0] if shape else None
        if rows is None or rows % microbatches == 0:
            continue
        fewer = rows // microbatches * microbatches
        divisors = [count for count in range(1, rows + 1) if rows % count == 0]
        nearest = min(divisors, key=lambda count: (abs(count - microbatches), count))
        raise InvalidArgumentError(
            f"the {rows} rows of {name!r} do not divide into {microbatches} micro-batches; use a batch of "
            f"{f'{fewer} or ' if fewer else ''}{fewer + microbatches} rows, or {nearest} micro-batches",
            node=graph.node_name(node),
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
