"""The simulated time of the built graph of a split, with the numbers of the closed form.

    simulated_step(step, Split(tp=8, dp=8, microbatches=16), cluster)           the graph by representatives: its time
    simulated_step_ms(...)                                                      and its timeline, or the time alone

The graph is that of `partita workload`; its ops cost what `TrainingKernels` says. What the closed form charges to the
host for each micro-batch, and to a step beside everything else, is in no graph, and is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from math import inf
from typing import NamedTuple

from attrs import evolve

from ....devices.cluster import Cluster
from ....devices.pipeline import cut
from ....devices.timing.fits.calibration import Calibration
from ....devices.timing.simulate import simulate
from ....devices.timing.timeline import Timeline
from ....errors import UnimplementedError
from ....graph.display.progress import ProgressCallback, counted, no_progress
from ...executors.in_flight import in_order
from ...executors.sent_timeline import SentTimeline
from ...executors.serial import SerialExecutor
from ...models.description import ModelDescription
from ...models.gpt import GptModel
from ...models.llama import LlamaModel
from ...models.split import Split
from ...workloads.model_building import build_model
from ..configurations import Configurations
from ..estimates import Estimate
from ..machine import Machine
from ..numbers import PlanNumbers, training_numbers
from ..step import PlannedStep
from ..times.assembly import SHARPNESS, assembled, exchange_ns
from ..times.terms import StepTerms, step_terms
from .exchanges import mark_gradients
from .kernels import TrainingKernels
from .machine import training_calibration, training_cluster
from .transfers import wait_for_sends
from .weights import WeightShapes

NS_PER_MS = 1e6


class SimulatedStep(NamedTuple):
    """The time of a step in ms, and the timeline of its graph, which is shorter by what is in no graph."""

    step_ms: float
    timeline: Timeline


def simulated_step_ms(
    step: PlannedStep,
    split: Split,
    cluster: Cluster,
    *,
    numbers: PlanNumbers | None = None,
    calibration: Calibration | None = None,
) -> float:
    """The time of a step in ms, as `simulated_step`."""
    return simulated_step(step, split, cluster, numbers=numbers, calibration=calibration).step_ms


def simulated_step(
    step: PlannedStep,
    split: Split,
    cluster: Cluster,
    *,
    numbers: PlanNumbers | None = None,
    calibration: Calibration | None = None,
) -> SimulatedStep:
    """A step that is simulated; `numbers` None are the fitted ones, `calibration` None is the catalog's.

    Raises UnimplementedError for attention through memory, dropout and logits in float32, which builders have not, and
    as `build_model` and `simulate`.
    """
    _check(step)
    machine = Machine.of(cluster, calibration)
    by = numbers or training_numbers().of(machine.spec.name)
    trained = training_cluster(machine, by)
    model = _untied(step.model) if split.pp > 1 else step.model
    built = build_model(
        model,
        split,
        trained,
        sequence_length=step.sequence_length,
        training=step.trains,
        representatives=True,
        whole_layers=step.recomputes_all,
        imbalance=step.imbalance,
    )
    if "pp" not in split.overlap:
        wait_for_sends(built.graph)
    mark_gradients(built.graph, step, split, by.gradients)
    ring = split.cp if split.cp_kind == "ring" else 1
    costs = TrainingKernels(training_calibration(machine, by), by, step, WeightShapes.of(built, model), ring=ring)
    timeline = simulate(cut(built.graph, trained, targets=built.targets), trained, cost_source=costs)
    terms = step_terms(step, machine, Configurations.of([split]))
    return SimulatedStep((timeline.makespan_ns + _outside_ns(split, terms, by)) / NS_PER_MS, timeline)


def _check(step: PlannedStep) -> None:
    """UnimplementedError for what builders have not."""
    lacking = {
        "attention through memory": not step.fused_attention,
        "logits in float32": not step.fused_loss,
        "dropout": step.dropout,
        "rows that are gathered again in the backward pass": step.gathers_again,
        "transfers of stages in parts": step.parts_transfers,
    }
    for what, is_asked in lacking.items():
        if is_asked:
            raise UnimplementedError(f"graphs of models have no {what}: plan without it to simulate the graph")


def _untied(model: ModelDescription) -> ModelDescription:
    """The model with a head of its own where it is tied to the embedding: frameworks keep a copy on the last stage."""
    return replace(model, tied=False) if isinstance(model, (GptModel, LlamaModel)) and model.tied else model


def _outside_ns(split: Split, terms: StepTerms, by: PlanNumbers) -> float:
    """What no graph has, as planned.

    The host's time for micro-batches, filling of the pipeline included, and for the step; what the scatter of launches
    adds to those that all take the same time; and what the first and the last stage take to add up the gradients of
    their copies of a tied table.
    """
    host_ns = by.step_ns + by.microbatch_ns * (split.microbatches + (split.pp - 1) / split.interleave)
    scattered, even = (assembled(terms, by, sharpness=sharpness).step_ns for sharpness in (SHARPNESS, inf))
    tied_ns = exchange_ns(terms.gradients.tied, by) * by.gradients
    return host_ns + float((scattered - even + tied_ns)[0])


def with_simulated(
    step: PlannedStep,
    estimates: Sequence[Estimate],
    cluster: Cluster,
    *,
    count: int,
    numbers: PlanNumbers | None = None,
    calibration: Calibration | None = None,
    executor: Executor | None = None,
    on_progress: ProgressCallback = no_progress,
    on_timeline: Callable[[Timeline], None] | None = None,
) -> list[Estimate]:
    """The estimates, the first `count` of them with the simulated time.

    They are simulated one after another, or by an `executor`. `on_progress` is told of each that is done, and
    `on_timeline` is given the timelines of their graphs, in order.
    """
    first = estimates[:count]
    one_more = counted(on_progress, "simulating the built graphs", len(first), "plans")
    sizes = (step, cluster, numbers, calibration, on_timeline is not None)
    calls = [partial(_sent_step, estimate.split, *sizes) for estimate in first]
    sent = in_order(executor or SerialExecutor(), calls, one_more=one_more)
    for _, timeline in sent:
        if on_timeline is not None and timeline is not None:
            on_timeline(timeline.received())
    done = [evolve(estimate, simulated_step_ms=ms) for estimate, (ms, _) in zip(first, sent, strict=True)]
    return [*done, *estimates[count:]]


def _sent_step(
    split: Split,
    step: PlannedStep,
    cluster: Cluster,
    numbers: PlanNumbers | None,
    calibration: Calibration | None,
    with_timeline: bool,
) -> tuple[float, SentTimeline | None]:
    """The time of a step in ms, and its timeline if it is asked for, such that another process can have both."""
    simulated = simulated_step(step, split, cluster, numbers=numbers, calibration=calibration)
    return simulated.step_ms, SentTimeline.of(simulated.timeline) if with_timeline else None
