"""Measured runs as a fit of numbers needs them: rows of tables -> terms of their steps and times, by model of GPU.

    fit_numbers(fit_rows([row, ...]))      the numbers of the closed form

Rows without a time, and those of which several splits may have run, have nothing to fit to.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....graph.arrays import Floats
from ..fitting import FitRows
from ..times.terms import StepTerms, joined, step_terms
from .run_calls import run_calls
from .training_row import TrainingRow

NS_PER_MS = 1e6


def fit_rows(rows: Sequence[TrainingRow]) -> list[FitRows]:
    """The measured steps of each model of GPU, in the order in which the rows name them."""
    timed = [row for row in rows if np.isfinite(row.step_ms) and len(row.splits) == 1]
    by_device: dict[str, list[tuple[StepTerms, Floats]]] = {}
    for call in run_calls(timed):
        measured = np.array([timed[i].step_ms for i in call.runs.tolist()]) * NS_PER_MS
        terms = step_terms(call.step, call.machine, call.configurations)
        by_device.setdefault(call.machine.spec.name, []).append((terms, measured))
    return [
        FitRows(name, joined([terms for terms, _ in several]), np.concatenate([ns for _, ns in several]))
        for name, several in by_device.items()
    ]
