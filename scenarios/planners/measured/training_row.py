"""One measured run of training: what ran, on which machine, and what was measured of it, in the unit of its table.

GPT-3 175B, full_recompute_s 18.13               columns {"full_recompute_s": "s"}, measured {"full_recompute_s": 18.13}
    row.step_ms                                  18130.0
    row.of_step_ms("full_recompute_s", 18000)    18.0, what a prediction is compared as
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Literal, TypeAlias

from attrs import field, frozen

from ...models.split import Split
from ..machine import Machine
from ..step import PlannedStep

Quantity: TypeAlias = Literal["ms", "s", "tflops", "allocated_gib", "state_gib", "activations_gib"]
"""what a column measures: the time of a step in ms or s, or as TFLOP/s of a GPU; what the fullest rank allocates,
its parameters with gradients and optimizer state, and its activations"""
TIMES: tuple[Quantity, ...] = ("ms", "s", "tflops")


@frozen(eq=False)
class TrainingRow:
    """A run. `splits` are several where the table leaves open which of them ran: the fastest that fits counts.

    model            what the table calls it; `gpus`, `model` and `global_batch` say which rows are alternatives
    columns          what was measured, by column
    measured         values in the unit of the column; NaN, or left out, where nothing is known
    tflop_per_gpu    operations of a GPU in the step as the table counts them, where it has TFLOP/s
    """

    model: str
    step: PlannedStep
    splits: tuple[Split, ...]
    machine: Machine
    columns: Mapping[str, Quantity]
    measured: Mapping[str, float] = field(factory=dict)
    tflop_per_gpu: float = nan

    @property
    def split(self) -> Split:
        """The split, or the first of several."""
        return self.splits[0]

    @property
    def gpus(self) -> int:
        """Devices of the run."""
        return self.split.devices

    @property
    def global_batch(self) -> int:
        """Sequences of a step."""
        return self.split.global_batch

    @property
    def step_ms(self) -> float:
        """The measured time of a step, NaN where there is none."""
        name = next((name for name, quantity in self.columns.items() if quantity in TIMES), None)
        return nan if name is None else self.as_step_ms(name, self.measured.get(name, nan))

    def as_step_ms(self, column: str, value: float) -> float:
        """ms of a step from a value of a column of times."""
        return value * 1e3 if self.columns[column] == "s" else self._per(column, value)

    def of_step_ms(self, column: str, step_ms: float) -> float:
        """The value of a column of times from ms of a step."""
        return step_ms / 1e3 if self.columns[column] == "s" else self._per(column, step_ms)

    def _per(self, column: str, value: float) -> float:
        """ms stay; TFLOP/s are operations by time, time is operations by TFLOP/s."""
        return 1e3 * self.tflop_per_gpu / value if self.columns[column] == "tflops" else value
