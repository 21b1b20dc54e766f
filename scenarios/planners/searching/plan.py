"""The answer of a search: the fastest configurations that fit, and what became of all others."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from ..estimates import Estimate
from ..machine import Machine
from ..step import PlannedStep


@frozen(eq=False)
class TrainingPlan:
    """What a search says of a step on a machine.

    configurations   all that were looked at: those that fit, and those that are impossible
    possible         those that model and cluster allow, whether they fit or not: so many were computed
    impossible       by reason: what model and cluster do not allow, and what does not fit in memory
    assumptions      what is left out, and what is the same in all configurations, as sentences
    plans            those that fit, the fastest first, as many as were asked for
    """

    step: PlannedStep
    machine: Machine
    global_batch: int
    configurations: int
    possible: int
    impossible: Mapping[str, int]
    assumptions: tuple[str, ...]
    plans: tuple[Estimate, ...]

    @property
    def fitting(self) -> int:
        """How many configurations fit."""
        return self.configurations - sum(self.impossible.values())
