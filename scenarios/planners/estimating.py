"""Estimates of splits: the closed forms of time and memory, together with rates that follow from them.

estimate(LlamaModel(...), Split(tp=8, dp=8, microbatches=16), cluster)      Estimate(step_ms 5123, mfu 0.41, ...)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...devices.cluster import Cluster
from ...devices.timing.fits.calibration import Calibration
from ...devices.timing.fits.products import bf16_peak
from ..models.description import ModelDescription
from ..models.split import Split
from .configurations import Configurations
from .estimates import Estimate
from .machine import Machine
from .memory import MemoryColumns, memory_columns
from .step import PlannedStep, length_of
from .times import StepTimes, step_times

GIB = 2.0**30
NS_PER_MS = 1e6


def estimate(
    model: ModelDescription,
    split: Split,
    cluster: Cluster | Machine,
    *,
    training: bool = True,
    calibration: Calibration | None = None,
    sequence_length: int | None = None,
    **settings: Any,  # Any: fields of PlannedStep
) -> Estimate:
    """What a step of a model costs, spread over a cluster by a split.

    Without `training` it is the forward pass alone. `sequence_length` is that of the model's positions, or 4096, unless
    given; `settings` are those of `PlannedStep`; `calibration` None is the catalog's. Raises InvalidArgumentError, with
    the nearest values that work, for a split that does not fit the model, the sequence or the cluster, and for GPUs of
    several models; UnimplementedError for what has no closed form: families, precisions and schedules.
    """
    step = PlannedStep(model, length_of(model, sequence_length), trains=training, **settings)
    machine = cluster if isinstance(cluster, Machine) else Machine.of(cluster, calibration)
    split.check(model, step.sequence_length, machine.devices)
    row = Configurations.of([split])
    return estimates_of(step, machine, row, step_times(step, machine, row), memory_columns(step, row), [0])[0]


def estimates_of(
    step: PlannedStep,
    machine: Machine,
    configurations: Configurations,
    times: StepTimes,
    memory: MemoryColumns,
    rows: Iterable[int],
) -> list[Estimate]:
    """The estimates of some rows, ranked in their order from 1."""
    peak = bf16_peak(machine.spec)
    flops = step.model.flops_per_token(step.sequence_length) / (1 if step.trains else 3)  # forward is a third
    found = []
    for rank, row in enumerate(rows, 1):
        tokens = int(configurations.global_batch[row]) * step.sequence_length
        seconds, devices = float(times.step_ns[row]) / 1e9, int(configurations.devices[row])
        found.append(
            Estimate(
                rank=rank,
                split=configurations.split(row),
                step_ms=float(times.step_ns[row]) / NS_PER_MS,
                step_ms_low=float(times.low_ns[row]) / NS_PER_MS,
                step_ms_high=float(times.high_ns[row]) / NS_PER_MS,
                simulated_step_ms=None,
                tokens_per_s=tokens / seconds,
                mfu=flops * tokens / (seconds * devices * peak),
                time_by_category_ms={name: float(it[row]) / NS_PER_MS for name, it in times.by_category.items()},
                bubble_fraction=float(times.bubble_fraction[row]),
                exposed_comm_ms=float(times.exposed_ns[row]) / NS_PER_MS,
                allocated_gib=float(memory.allocated[row]) / GIB,
                allocated_gib_low=float(memory.low[row]) / GIB,
                allocated_gib_high=float(memory.high[row]) / GIB,
                reserved_gib=float(memory.reserved[row]) / GIB,
                memory_limit_gib=machine.memory_limit_bytes / GIB,
                memory_by_category_gib={name: float(it[row]) / GIB for name, it in memory.by_category.items()},
                fullest_stage=int(memory.stage[row]),
                provenance=times.provenance,
            )
        )
    return found
