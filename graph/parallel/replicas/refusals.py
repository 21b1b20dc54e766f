"""Training steps that several replicas cannot run as one device does, by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from ....errors import InvalidArgumentError, UnimplementedError
from ...graph import Graph
from ...ops.record import State
from ...tensor_id import parse_tensor_name
from ..training_step import TrainingStep
from .row_mixing import mixing_node

BatchStatistics = Literal["refuse", "local"]
_SOURCES = {State.QUEUE: "a queue", State.ITERATOR: "a dataset"}


def check_batch(graph: Graph, batch: Sequence[str]) -> None:
    """UnimplementedError for a batch that comes out of a queue or dataset."""
    for name in batch:
        node = graph.find_node(parse_tensor_name(name).node)
        state = None if node is None else node.op_def.record.state
        if node is not None and state in _SOURCES:
            raise UnimplementedError(
                f"{name!r} takes the batch from {_SOURCES[state]}: each replica would take one of its own; "
                "replace it by a placeholder",
                node=node.name,
                op=node.op,
            )


def check_sources(step: TrainingStep, nodes: Collection[int]) -> None:
    """UnimplementedError for a queue or dataset among the nodes of a replica."""
    for node in sorted(nodes):
        kind = step.flow.kinds[node]
        state = None if kind is None else kind.op_def.record.state
        if kind is not None and state in _SOURCES:
            name = step.graph.node_name(node)
            raise UnimplementedError(
                f"the step reads {_SOURCES[state]} by {name!r}: each replica would take elements of its own; "
                "replace it by a placeholder and name that in `batch`",
                node=name,
                op=kind.op,
            )


def check_statistics(step: TrainingStep, how: BatchStatistics) -> None:
    """UnimplementedError for statistics of the batch, unless each replica may have its own."""
    if how == "local":
        return
    if how != "refuse":
        raise InvalidArgumentError(f"batch_statistics is 'refuse' or 'local', not {how!r}")
    node = next(iter(statistics_of(step)), None)
    if node is not None:
        name = step.graph.node_name(node)
        raise UnimplementedError(
            f"{name!r} needs statistics of the whole batch, and a replica has only its rows; with "
            "batch_statistics='local' each replica takes those of its own rows",
            node=name,
            op=step.graph.node_properties(node).op,
        )


def statistics_of(step: TrainingStep) -> list[int]:
    """Nodes that normalise by the batch, update a variable by it without a gradient, or mix rows of it."""
    normalising = [
        node
        for node in sorted(step.forward & step.dependent)
        if (kind := step.flow.kinds[node]) is not None
        and kind.op_def.record.normalises_batch
        and kind.attrs.get("is_training", True)
    ]
    if normalising or step.statistics:
        return [*normalising, *step.statistics]
    mixing = mixing_node(step)
    return [] if mixing is None else [mixing]
