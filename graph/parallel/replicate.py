"""Data parallelism: each replica computes gradients of its share of the batch; all make the same update.

x: [8,4] --Split--> x of replica 0: [4,4] --forward, backward--> d_w --all-reduce--> the mean over replicas --> update
                `-> x of replica 1: [4,4] --forward, backward--> d_w --all-reduce--> the same             --> update

training_step     what the step consists of       buckets         gradients are added over replicas
refusals          what replicas cannot compute    rewriting       the program of replica 0 is changed
program           what a replica runs             copies          and copied for the others
parameter_server  variables on one device         outputs         values over all replicas
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..builder.checks import requested_device
from ..builder.tensor_names import Name, Names, tensor_names
from ..edge_ends import Output
from ..graph import Graph
from ..graphdef.importer import graph_def_to_graph
from ..graphdef.sources import GraphSource
from ..passes.lower_functional import lower_functional
from .batch_size import BatchSize
from .devices_of_nodes import follow_groups
from .replicas.devices import replica_devices
from .replicas.feeding import FeedingMode, rows_of
from .replicas.outputs import CONCAT, MEAN, SUM
from .replicas.refusals import BatchStatistics, check_batch, check_statistics
from .replicas.replication import Replication
from .training_step import TrainingStep, training_step
from .value_flow import output_named
from .zero.step import zero_options

BUCKET_BYTES = 26_214_400
Reduction = Literal["mean", "sum"]


@collector_paused()
def replicate(
    graph: GraphSource,
    devices: Sequence[str | Sequence[str]],
    *,
    batch: Names,
    loss: Name,
    reduction: Reduction = "mean",
    feeds: FeedingMode = "whole",
    mean: Names = (),
    concat: Names = (),
    parameters: str | None = None,
    batch_statistics: BatchStatistics = "refuse",
    zero: int = 0,
    zero_group: int | None = None,
    units: Sequence[str] | None = None,
    prefetch: int = 1,
    bucket_bytes: int = BUCKET_BYTES,
) -> Graph:
    """The training step of a graph on several replicas, each with its rows of the batch; `graph` is left alone.

    `devices` has an entry for each replica: a device, or as many devices as the graph is on, which replace those in the
    order of their names. Replica 0 keeps the names of the graph, the nodes of replica k have "replica_k/" before
    them. `batch` names the placeholders that are split along axis 0; with `feeds` "per_replica" each replica has
    placeholders of its own for its rows instead. Other placeholders are fed once, for all.

    The loss, and the tensors of `mean`, have the mean over replicas under their names, the loss the sum with
    `reduction` "sum"; those of `concat` have the rows of all replicas. Every other tensor is that of replica 0.
    Gradients are averaged or summed as the loss is, before anything but sums reads them: clipping, decay and loss
    scaling see those of the whole batch. They travel in buckets of `bucket_bytes`. With `parameters`, a device, the
    variables and their updates are there alone, and gradients and values are sent.

    `zero` shares out over the replicas the optimizer's state (1), gradients too (2), parameters too (3), inside groups
    of `zero_group`. Stage 3 gathers parameters by `units`, scopes of names, `prefetch` units before they are needed.

    Variables start equal, whatever initialises or restores them; random ops draw other numbers on each replica, if they
    have seeds. An update that a target names runs in all replicas.

    Raises InvalidArgumentError for a batch that does not divide (with the nearest that does), for devices and groups
    that do not fit, and if `zero` finds nothing to share; UnimplementedError, by name, for statistics of the batch
    (unless `batch_statistics` is "local": each replica has its own), and for a batch that comes out of a queue or
    dataset; NotFoundError for unknown names.
    """
    entries = replica_devices(devices)
    _check_choices(reduction, feeds)
    ends = {MEAN: tensor_names(mean), CONCAT: tensor_names(concat)}
    sharding = zero_options(zero, zero_group, units, prefetch, bucket_bytes, parameters)
    (loss_name,) = tensor_names(loss)
    others = [name for given in ends.values() for name in given]
    step, size = _part_of(_plain(graph), tensor_names(batch), loss_name, others, len(entries))
    check_statistics(step, batch_statistics)
    outputs: dict[Output, str] = {output_named(step.graph, name): how for how in ends for name in ends[how]}
    outputs[output_named(step.graph, loss_name)] = reduction
    replication = Replication(step, entries, outputs, averages=reduction == MEAN, zero=sharding)
    replication.by_rank(size.parts_of_constants(len(entries)))
    replication.feed(by_parts=feeds == "per_replica")
    if parameters is None:
        replication.reduce(bucket_bytes)
    else:
        replication.serve(requested_device(parameters))
    return replication.graph()


def _check_choices(reduction: str, feeds: str) -> None:
    """InvalidArgumentError for a word that is not one of those there are."""
    for value, allowed in ((reduction, (MEAN, SUM)), (feeds, ("whole", "per_replica"))):
        if value not in allowed:
            raise InvalidArgumentError(f"{value!r} is none of {', '.join(map(repr, allowed))}")


def _part_of(
    plain: Graph, batch: Sequence[str], loss: str, others: Sequence[str], replicas: int
) -> tuple[TrainingStep, BatchSize]:
    """The step of one replica, and what of it follows the size of the batch."""
    check_batch(plain, batch)
    rows_of(plain, batch, replicas)
    size = BatchSize(plain, batch)
    step = training_step(size.part(replicas), batch=batch, loss=loss, outputs=others, shapes=size.shapes)
    return step, size


def _plain(graph: GraphSource) -> Graph:
    """A graph of its own without calls of functions, whose ids are dense."""
    source = graph if isinstance(graph, Graph) else graph_def_to_graph(graph)
    plain = lower_functional(source, inline_calls=True, control_flow=False).copy()
    follow_groups(plain)
    return plain
