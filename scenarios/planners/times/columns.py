"""The times of configurations with their intervals, by the numbers of training on that model of GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Floats
from ..configurations import Configurations
from ..faster import numbers_on
from ..machine import Machine
from ..numbers import TrainingNumbers, training_numbers
from ..step import PlannedStep
from .assembly import assembled
from .terms import step_terms


class StepTimes(NamedTuple):
    """By row, in ns; the categories are those of `TIME_CATEGORIES` and add up to the step.

    `low_ns` and `high_ns` are the bounds of four of five steps. `provenance` is "fitted" where steps on that model of
    GPU were measured, else "transferred".
    """

    step_ns: Floats
    low_ns: Floats
    high_ns: Floats
    by_category: Mapping[str, Floats]
    bubble_fraction: Floats
    exposed_ns: Floats
    provenance: str


def step_times(
    step: PlannedStep, machine: Machine, configurations: Configurations, *, numbers: TrainingNumbers | None = None
) -> StepTimes:
    """The times of a step of each configuration; `numbers` None are those that measured steps have said.

    Configurations are taken as they are: whether a model can be split so is for `Split.check` to say. Raises
    UnimplementedError for a family of models or a precision without a closed form, UnknownCost for a device whose
    kernels nobody measured and no other one can stand for.
    """
    fitted = training_numbers() if numbers is None else numbers
    name = machine.spec.name
    by = numbers_on(fitted.of(name), machine.factors)
    said = assembled(step_terms(step, machine, configurations), by)
    wider = np.exp(by.spread)
    return StepTimes(
        said.step_ns,
        said.step_ns / wider,
        said.step_ns * wider,
        said.by_category,
        said.bubble_fraction,
        said.exposed_ns,
        fitted.provenance(name),
    )
