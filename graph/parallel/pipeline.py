"""A training step of one device as a pipeline of stages over several devices, fed by micro-batches.

    x -> a/y -> b/z -> loss,  a/w -= rate * a/dw,  b/w -= rate * b/dw

    pipeline(graph, {"a": "/gpu:0", "b": "/gpu:1"}, batch=["x"], loss="loss", microbatches=2)

    stage 0 on GPU:0, which has a/w            stage 1 on GPU:1, which has b/w
    pipeline/forward_s0_m0                     pipeline/forward_s1_m0     a/y of the first half of x
    pipeline/forward_s0_m1                     pipeline/backward_s1_m0
    pipeline/backward_s0_m0                    pipeline/forward_s1_m1
    pipeline/backward_s0_m1                    pipeline/backward_s1_m1
    a/dw = mean of both halves, update         b/dw, update, loss

The schedule decides about the order of calls on each device. The way of a step through the modules:

    training_step     its parts                          pipelines/stages, cut    a stage for each node
    pipelines/sized   whole batch, or one micro-batch    pipelines/sums           gradients of several stages
    pipelines/region  what micro-batches run             pipelines/functions      a function per stage and direction
    pipelines/refusals, seats                            pipelines/accumulation   with the sums of gradients
    pipelines/outputs what else is read of that          pipelines/schedules      the order of their calls
    pipelines/devices where the rest is                  pipelines/calls          the new graph
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ...collector import collector_paused
from ...errors import InvalidArgumentError
from ..builder.checks import requested_device
from ..builder.tensor_names import Name, Names, tensor_names
from ..graph import Graph
from ..graphdef.importer import graph_def_to_graph
from ..graphdef.sources import GraphSource
from ..passes.lower_functional import expand, lower_functional
from .pipelines.calls import StagedStep, last_calls, pipelined_graph
from .pipelines.devices import gradient_stages, outside_stages, variable_stages
from .pipelines.region import MicroBatchRegion
from .pipelines.schedules import PipelineShape, find_schedule
from .pipelines.sized import MICRO_BATCH, grow_batch, is_sized, resized_region, sized_region
from .pipelines.stages import Costs, backward_stages, stages_by_cost, stages_by_scope
from .pipelines.sums import without_sums

_CLASS = "_class"


@collector_paused()
def pipeline(
    graph: GraphSource,
    stages: Mapping[str, str] | Sequence[str],
    *,
    batch: Names,
    loss: Name,
    microbatches: int,
    schedule: str = "1f1b",
    interleave: int = 1,
    weights: Costs | None = None,
    reduction: Literal["mean", "sum"] = "mean",
    batch_statistics: Literal["refuse", "local"] = "refuse",
    sized: Literal["batch", "microbatch"] = "batch",
    gradients: Names | Mapping[str, Name] | None = None,
    others: Names = (),
    accumulate: Literal["float32"] | None = None,
    inline_last: bool = False,
) -> Graph:
    """The training step of `graph` as a pipeline; its argument stays as it is.

    `stages` maps name scopes of the forward pass to devices, in the order of the data: scopes that follow each other on
    one device are one stage. Or it is a list of devices: then the forward pass is cut so that the slowest stage is as
    fast as can be by `weights`, the cost of a node or scope by name, or a function of a node; without it a node costs 1
    and 1 more per element of the variables that it reads. With `interleave` v each device has v stages, in turns.

    `batch` names the placeholders that are split along axis 0 into `microbatches` parts, and `loss` a scalar. With
    `reduction` "mean" the loss is a mean over rows, and loss and gradients are averaged over the micro-batches, with
    "sum" they are added up, with `accumulate` "float32" those of half precision in float32. `schedule` is the name of
    one in `schedules`.

    With `sized` "microbatch" the graph is that of one micro-batch already: nothing in it is resized, its placeholders
    grow. `gradients` then names what micro-batches add up and the updates read; as a mapping it has by the name of a
    variable the tensor that is its gradient, and `others` are further tensors. Where buckets join gradients of several
    stages only a mapping says which stage computes each. Collectives may be in it. With `inline_last` the nodes of the
    last call of each stage are there in its place: a gradient can travel while others are computed still.

    The loss, the gradients and what depends on them or on tensors with a row per row of the batch keep their names and
    values. Other tensors of the forward and backward pass are in functions, and so are not there any more, and neither
    is what reads them. Variables are on the device of the first stage that reads them.

    With `batch_statistics` "local" each micro-batch normalises by its own statistics, and those that variables keep are
    averaged. Raises InvalidArgumentError for unknown names, stages that do not follow each other, a batch that does not
    divide, statistics of the batch, queues, datasets and lowered loops, and what a schedule refuses.
    """
    _check_one_of("reduction", reduction, ("mean", "sum"))
    _check_one_of("batch_statistics", batch_statistics, ("refuse", "local"))
    shape, ends = _checked_shape(stages, interleave, microbatches), (tensor_names(batch), tensor_names(loss)[0])
    if is_sized(sized, gradients, accumulate):
        region = sized_region(_plain(graph), *ends, _added_up(gradients or (), others), microbatches)
    else:
        region = resized_region(_plain(graph), *ends, microbatches, is_local=batch_statistics == "local")
    staged, order = _staged(region, stages, shape, weights), find_schedule(schedule).calls(shape)
    staged = replace(staged, order=order, is_mean=reduction == "mean", in_float32=accumulate is not None)
    new = pipelined_graph(staged)
    _place(new, staged)
    if sized == MICRO_BATCH:
        grow_batch(new, region, microbatches)
    for call in last_calls(staged) if inline_last else ():
        _inline(new, call)
    return new


def _added_up(gradients: Names | Mapping[str, Name], others: Names) -> dict[str, str | None]:
    """The tensors that micro-batches add up, each with the first of the variables that it is the gradient of."""
    found: dict[str, str | None] = {}
    if isinstance(gradients, Mapping):
        for variable, name in gradients.items():
            found.setdefault(tensor_names(name)[0], variable)
    else:
        found |= dict.fromkeys(tensor_names(gradients))
    return dict.fromkeys(tensor_names(others)) | found


def _inline(new: Graph, name: str) -> None:
    """Puts the nodes of a call in its place, all on its device."""
    call, first = new.find_id(name), new.num_node_ids
    if call is not None:
        device = new.requested_device(call)
        expand(new, [call])
        for node in range(first, new.num_node_ids):
            new.request_device(node, device)


def _staged(
    region: MicroBatchRegion,
    stages: Mapping[str, str] | Sequence[str],
    shape: PipelineShape,
    weights: Costs | None,
) -> StagedStep:
    """The region cut into stages, without an order of calls."""
    if isinstance(stages, Mapping):
        devices, scopes = _stages_of_scopes(stages)
        forward = stages_by_scope(region, scopes)
    else:
        devices = [requested_device(name) for name in stages] * shape.interleave
        forward = stages_by_cost(region, len(devices), weights)
    variables = variable_stages(region, forward)
    stage_of = backward_stages(region, forward, gradient_stages(region, variables))
    region = without_sums(region, stage_of)
    return StagedStep(region, stage_of, outside_stages(region, stage_of, variables), devices, shape)


def _plain(graph: GraphSource) -> Graph:
    """The graph with calls of functions inlined."""
    source = graph if isinstance(graph, Graph) else graph_def_to_graph(graph)
    return lower_functional(source, inline_calls=True, control_flow=False).copy()


def _check_one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InvalidArgumentError(f"{name} is {value!r}; use {' or '.join(map(repr, allowed))}")


def _checked_shape(stages: Mapping[str, str] | Sequence[str], interleave: int, microbatches: int) -> PipelineShape:
    for name, value in (("interleave", interleave), ("microbatches", microbatches)):
        if value < 1:
            raise InvalidArgumentError(f"{name} is {value}; use a number of at least 1")
    if not stages:
        raise InvalidArgumentError("there are no stages; name at least one device")
    if not isinstance(stages, Mapping):
        twice = next((name for k, name in enumerate(stages) if name in stages[:k]), None)
        if twice is not None:
            raise InvalidArgumentError(f"device {twice!r} is given twice; use interleave for several stages per device")
        return PipelineShape(len(stages), interleave, microbatches)
    devices, _ = _stages_of_scopes(stages)
    count = len(dict.fromkeys(devices))
    if any(device != devices[k % count] for k, device in enumerate(devices)) or len(devices) % count:
        raise InvalidArgumentError(
            f"the stages are on {', '.join(devices)}; stages of one device must follow those of all others in turns"
        )
    if interleave not in (1, len(devices) // count):
        raise InvalidArgumentError(
            f"interleave is {interleave}, but the devices have {len(devices) // count} stages each; leave it out"
        )
    return PipelineShape(count, len(devices) // count, microbatches)


def _stages_of_scopes(stages: Mapping[str, str]) -> tuple[list[str], dict[str, int]]:
    """The device of each stage, and the stage of each scope."""
    devices: list[str] = []
    scopes: dict[str, int] = {}
    for scope, name in stages.items():
        device = requested_device(name)
        if not devices or devices[-1] != device:
            devices.append(device)
        scopes[scope.strip("/")] = len(devices) - 1
    return devices, scopes


def _place(new: Graph, staged: StagedStep) -> None:
    """Requests the devices of what runs once per step, and removes what nothing needs any more."""
    region, outside, devices = staged.region, staged.outside, staged.devices
    gone = set(region.nodes | region.dropped)
    for number in reversed(region.step.flow.order):
        node = region.whole.node(number) if number < region.whole.num_node_ids else region.whole.source
        if not node.is_op or number in gone:
            continue
        readers = [edge.dst.id for edge in node.out_edges() if edge.dst.is_op]
        if readers and gone.issuperset(readers) and (region.is_copied(number) or region.is_number(number)):
            new.remove_node(new.node(number))
            gone.add(number)
            continue
        if number in outside:
            new.request_device(number, devices[outside[number]])
        if any(new.find_id(name) is None for name in node.properties.colocated_with):
            new.node(number).clear_attr(_CLASS)
