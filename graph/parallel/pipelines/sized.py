"""The region of a pipeline, from a graph for the whole batch or from one for a single micro-batch.

    sized="batch"         x: (8, 4) of the graph     x: (8, 4) is fed, calls get (2, 4): the graph is resized
    sized="microbatch"    x: (2, 4) of the graph     x: (8, 4) is fed, calls get (2, 4): the graph stays as it is

What was made for a micro-batch says itself what is added up: `gradients` names the tensors that the updates read. The
other nodes that depend on the batch are gone, as nothing is known of their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....errors import InvalidArgumentError, NotFoundError, UnimplementedError
from ...edge_ends import Output
from ...graph import Graph
from ..batch_shapes import BatchShapes
from ..batch_size import BatchSize
from ..training_step import training_step
from ..value_flow import output_named
from .outputs import read_outside, with_outputs
from .refusals import check_batch, check_nodes, check_region
from .region import MicroBatchRegion, micro_batch_region
from .seats import instances_per_call

MICRO_BATCH = "microbatch"


def is_sized(sized: str, gradients: object, accumulate: str | None) -> bool:
    """Whether a graph is that of one micro-batch; InvalidArgumentError for words and gradients that do not fit."""
    for name, value, allowed in (
        ("sized", sized, ("batch", MICRO_BATCH)),
        ("accumulate", accumulate, (None, "float32")),
    ):
        if value not in allowed:
            raise InvalidArgumentError(f"{name} is {value!r}; use {' or '.join(map(repr, allowed))}")
    if (gradients is not None) != (sized == MICRO_BATCH):
        raise InvalidArgumentError(
            f"sized is {sized!r}: name the gradients of a graph that is sized for a micro-batch, and of no other"
        )
    return sized == MICRO_BATCH


def resized_region(
    whole: Graph, batch: Sequence[str], loss: str, microbatches: int, *, is_local: bool
) -> MicroBatchRegion:
    """The region of a graph for the whole batch, made for the rows of a micro-batch; raises as `pipeline`."""
    check_batch(whole, batch, microbatches)
    size = BatchSize(whole, batch)
    step = training_step(size.part(microbatches), batch=batch, loss=loss, shapes=size.shapes)
    region = micro_batch_region(whole, step)
    check_region(region, size.parts_of_constants(microbatches), is_local=is_local)
    return with_outputs(region, is_local=is_local)


def sized_region(
    whole: Graph, batch: Sequence[str], loss: str, gradients: Mapping[str, str | None], microbatches: int
) -> MicroBatchRegion:
    """The region of a graph for one micro-batch.

    `gradients` are the tensors that micro-batches add up, each with the variable that it is of, if that is known.

    Raises NotFoundError for a variable that is not there, InvalidArgumentError for gradients that do not depend on the
    batch, and UnimplementedError for updates by other tensors of the batch, and for nodes that cannot run once per
    micro-batch.
    """
    step = training_step(whole, batch=batch, loss=loss, shapes=UnknownRows(), gradients=[*gradients])
    region = replace(micro_batch_region(whole, step), variable_of=_variables(whole, gradients))
    check_nodes(region)
    number_step = instances_per_call(region, microbatches)
    lost = {reader for _, reader in read_outside(region)}
    lost.update(reader for node in region.batch for reader in region.readers(node) if reader not in region.nodes)
    dropped = step.flow.descendants(lost) - region.nodes
    statistic = next((node for node in step.statistics if node in dropped), None)
    if statistic is not None:
        raise UnimplementedError(
            f"{region.name(statistic)!r} changes a variable by statistics of the batch, which micro-batches have each "
            "for itself; give a graph without it",
            node=region.name(statistic),
        )
    return replace(region, dropped=frozenset(dropped), number_step=number_step)


def _variables(graph: Graph, gradients: Mapping[str, str | None]) -> dict[Output, int]:
    """By gradient the node of its variable, as far as it is named."""
    found = {}
    for gradient, variable in gradients.items():
        if variable is not None:
            node = graph.find_id(variable)
            if node is None:
                raise NotFoundError(f"the graph has no variable {variable!r}; name the node that makes it")
            found[output_named(graph, gradient)] = node
    return found


def grow_batch(graph: Graph, region: MicroBatchRegion, microbatches: int) -> None:
    """Gives placeholders of one micro-batch the rows of all; changes `graph`."""
    for number in region.step.batch:
        node = graph.node(number)
        shape = node.attrs.get("shape")
        if shape and shape[0] is not None:
            node.add_attr("shape", (shape[0] * microbatches, *shape[1:]))


class UnknownRows(BatchShapes):
    """What is known of the rows of a graph that nobody looked at."""

    def __init__(self) -> None:
        """Reads nothing."""
        self.batch = {}
