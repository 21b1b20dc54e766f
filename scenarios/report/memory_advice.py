"""What would make a step of a model fit in memory, by the closed form: a sentence for reports of its simulation.

the smallest change that fits: recompute=full (61.3 GiB by the closed form)
"""

from __future__ import annotations

from collections.abc import Callable

from ...devices.units import format_bytes
from ...errors import InvalidArgumentError, UnimplementedError
from ..planners.configurations import Configurations
from ..planners.memory.changes import smallest_change
from ..planners.step import PlannedStep
from ..workloads.model_step import ModelStep


def advice_of(step: ModelStep) -> Callable[[int], str] | None:
    """Says for a size of memory, in bytes, which change of a split makes a training step fit; None for inference."""
    if not step.trains:
        return None

    def advice(limit_bytes: int) -> str:
        planned = PlannedStep(step.model, step.sequence_length)
        try:
            found = smallest_change(planned, Configurations.of([step.split]), 0, limit_bytes)
        except (InvalidArgumentError, UnimplementedError):  # splits without a closed form
            return ""
        if not found.changes:
            return ""
        needs = f"{found.text} ({format_bytes(int(found.reserved_bytes))} by the closed form)"
        return f"the smallest change that fits: {needs}" if found.fits else f"no split fits; the least is {needs}"

    return advice
