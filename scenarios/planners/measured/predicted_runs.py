"""What the closed form says of measured runs: rows of tables -> times and memory, a value a row.

    a row of table 1 of Narayanan et al. with 9 splits     9 rows of the closed form, of which 7 fit
                                                           the fastest of the 7 is what the row is said to take

Rows of one step on one machine are one call of the closed form. What it refuses is NaN, and does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ....devices.calibration.validation.measured_set import UNKNOWN
from ....errors import PartitaError
from ....graph.arrays import Flags, Floats
from ..memory import memory_columns
from ..numbers import TrainingNumbers
from ..times import step_times
from .fit_rows import NS_PER_MS
from .run_calls import RunCall, run_calls
from .training_row import TrainingRow

GIB = 2.0**30
_STATE = ("parameters", "gradients", "optimizer")
_COLUMNS = (
    *("step_ms", "step_ms_low", "step_ms_high"),
    *("allocated", "allocated_low", "allocated_high", "reserved", "state", "activations"),
)


class PredictedRuns(NamedTuple):
    """A value a row: ms of a step, GiB of the fullest rank with parts of it, and whether a run fits."""

    columns: Mapping[str, Floats]
    fits: Flags
    provenance: tuple[str, ...]


def predicted_runs(rows: Sequence[TrainingRow], numbers: TrainingNumbers | None) -> PredictedRuns:
    """The predictions of each row; `numbers` None are those of the catalog."""
    owners = [row for row in rows for _ in row.splits]
    every = {name: np.full(len(owners), np.nan) for name in _COLUMNS}
    provenance = [UNKNOWN] * len(owners)
    for call in run_calls(rows):
        try:
            values, named = _columns(call, numbers)
        except PartitaError:
            continue
        for name, column in values.items():
            every[name][call.runs] = column
        for i in call.runs.tolist():
            provenance[i] = named
    limit = np.array([owner.machine.memory_limit_bytes for owner in owners]) / GIB
    fits = every["reserved"] <= limit
    ends = list(accumulate(len(row.splits) for row in rows))
    chosen = [_fastest(every["step_ms"], fits, end - len(row.splits), end) for row, end in zip(rows, ends, strict=True)]
    columns = {name: values[chosen] for name, values in every.items()}
    return PredictedRuns(columns, fits[chosen], tuple(provenance[at] for at in chosen))


def _fastest(times: Floats, fits: Flags, start: int, end: int) -> int:
    """The fastest split that fits of those from `start` to `end`; of all where none does."""
    own = np.where(np.isnan(times[start:end]), np.inf, times[start:end])
    possible = np.where(fits[start:end], own, np.inf)
    return start + int(np.argmin(possible if np.isfinite(possible).any() else own))


def _columns(call: RunCall, numbers: TrainingNumbers | None) -> tuple[dict[str, Floats], str]:
    configurations = call.configurations
    times = step_times(call.step, call.machine, configurations, numbers=numbers)
    memory = memory_columns(call.step, configurations)
    state = sum((memory.by_category[name] for name in _STATE), np.zeros(len(configurations)))
    in_bytes = (memory.allocated, memory.low, memory.high, memory.reserved, state, memory.by_category["activations"])
    in_ns = (times.step_ns, times.low_ns, times.high_ns)
    values = [column / NS_PER_MS for column in in_ns] + [column / GIB for column in in_bytes]
    return dict(zip(_COLUMNS, values, strict=True)), times.provenance
