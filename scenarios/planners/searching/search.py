"""All splits of a model on a cluster: the possible ones, their memory, the time of those that fit, the fastest first.

    search space  ->  configurations  ->  memory_columns  ->  those that fit  ->  step_times  ->  TrainingPlan
    axes, rules       columns             fullest rank        reserved             ms, categories    the best `top`

GPT-3 175B on 64 A100s with a global batch of 512 sequences: 42,540 configurations, 31,936 of them possible. Memory is
first because it takes less time than time does, and leaves a part of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ....devices.cluster import Cluster
from ....devices.kernels.blas_threads import LIMIT
from ....devices.timing.fits.calibration import Calibration
from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Positions
from ....graph.display.progress import Progress, ProgressCallback, no_progress
from ...models.description import ModelDescription
from ...models.split import Split
from ..configurations import Configurations
from ..estimating import estimates_of
from ..machine import OUTSIDE_BYTES, Machine
from ..memory import memory_columns
from ..step import PlannedStep, length_of
from ..times import step_times
from .axes import AskedAxes, SplitValues, asked
from .enumeration import enumerated
from .plan import TrainingPlan
from .refusals import nothing_fits, nothing_possible
from .rules import TOO_LARGE
from .space import SearchSpace

_STAGES = 3


def search(
    model: ModelDescription,
    cluster: Cluster | Machine,
    *,
    global_batch: int,
    sequence_length: int | None = None,
    search: str | Iterable[str] | None = None,
    split: SplitValues | None = None,
    top: int = 10,
    calibration: Calibration | None = None,
    on_progress: ProgressCallback = no_progress,
    **settings: Any,  # Any: fields of PlannedStep
) -> TrainingPlan:
    """The `top` fastest splits of a training step of `global_batch` sequences that fit, and how many there are.

    `search` names the axes to search ("tp,pp,zero" or a list; left out all of them), `split` fixes values of axes
    ("tp=8,zero=1+3": "+" lists those to try; or a mapping). An axis that is neither has its default, as `Split` has it.
    `sequence_length` is that of the model's positions, or 4096, unless given. `settings` are those of `PlannedStep`.
    All devices of the cluster are used, unless `split` has dp and no other number of ranks is searched. A `Machine` in
    place of a cluster has its own calibration. `on_progress` is told of each stage.

    Equal times are in the order of memory, then of the columns. Raises InvalidArgumentError for a name or value that
    does not exist, for what no configuration satisfies, with the nearest that one does, and for a cluster of several
    models of GPUs; ResourceExhaustedError for a model that fits nowhere, with the smallest memory and what would fit.
    """
    wanted = asked(search, split)
    step = PlannedStep(model, length_of(model, sequence_length), **settings)
    machine = cluster if isinstance(cluster, Machine) else Machine.of(cluster, calibration)
    _check(step, wanted, global_batch, top)
    space = SearchSpace(
        model, step.sequence_length, global_batch, machine.devices, machine.per_host, wanted, step.trains
    )
    with LIMIT.hold():
        return _planned(step, machine, space, top, on_progress)


def _planned(
    step: PlannedStep, machine: Machine, space: SearchSpace, top: int, on_progress: ProgressCallback
) -> TrainingPlan:
    """The plan of a space, on one thread of BLAS: with several a time may have other last bits, and so another rank."""
    on_progress(_stage("listing configurations", 0))
    found = enumerated(space)
    configurations = found.configurations
    if not len(configurations):
        raise nothing_possible(space, found.impossible)
    on_progress(_stage(f"memory of {len(configurations):,} configurations", 1))
    memory = memory_columns(step, configurations)
    rows = np.flatnonzero(memory.reserved <= machine.memory_limit_bytes)
    if not len(rows):
        raise nothing_fits(step, machine, space, configurations, memory.reserved)
    too_large = len(configurations) - len(rows)
    fitting, memory = configurations.taken(rows), memory.taken(rows)
    on_progress(_stage(f"time of {len(fitting):,} configurations", 2))
    times = step_times(step, machine, fitting)
    best = _fastest(times.step_ns, memory.reserved, fitting, top)
    on_progress(_stage("searching", _STAGES))
    return TrainingPlan(
        step,
        machine,
        space.global_batch,
        found.count,
        len(configurations),
        {**found.impossible, **({TOO_LARGE: too_large} if too_large else {})},
        (*space.assumptions, f"{OUTSIDE_BYTES >> 30} GiB of a device are outside the allocator"),
        tuple(estimates_of(step, machine, fitting, times, memory, best)),
    )


def _stage(label: str, done: int) -> Progress:
    return Progress(label, done, _STAGES, "stages")


def _check(step: PlannedStep, wanted: AskedAxes, global_batch: int, top: int) -> None:
    for name, count in (("global_batch", global_batch), ("top", top)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidArgumentError(f"{name}={count!r} is no positive number; give 1 or more")
    Split().check(step.model, step.sequence_length)
    stages = wanted.same.get("stages")
    if stages is not None:
        Split(pp=len(stages), stages=stages).stages_of(step.model.layers)


def _fastest(step_ns: Floats, reserved: Floats, configurations: Configurations, top: int) -> Positions:
    """The rows of the `top` least times, in order; between equal ones all columns decide, so that it is one order."""
    count = min(top, len(step_ns))
    rows = np.flatnonzero(step_ns <= np.partition(step_ns, count - 1)[count - 1])
    columns: list[Any] = [column[rows] for column in configurations.columns.values()]
    order = np.lexsort([*reversed(columns), reserved[rows], step_ns[rows]])
    return rows[order[:count]]
