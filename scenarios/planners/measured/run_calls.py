"""Runs that one call of the closed form answers: rows of tables -> steps on machines, with configurations in columns.

    20 rows of 4 models on 3 machines       4 calls: 3.6 B on 64 GPUs, 18.4 B on 256, 39.1 and 175 B on 512

A row with several splits is several runs. They are numbered in the order of the rows, and of a row in that of its
splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Numbers
from ...models.split import Split
from ..configurations import Configurations
from ..machine import Machine
from ..step import PlannedStep
from .training_row import TrainingRow


class RunCall(NamedTuple):
    """A step on a machine, its configurations, and the numbers of these runs."""

    step: PlannedStep
    machine: Machine
    splits: tuple[Split, ...]
    runs: Numbers

    @property
    def configurations(self) -> Configurations:
        """The splits in columns."""
        return Configurations.of(self.splits)


def run_calls(rows: Sequence[TrainingRow]) -> list[RunCall]:
    """The runs of all rows, those of one step, machine, overlap and precision together."""
    runs = [(row, split) for row in rows for split in row.splits]
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (row, split) in enumerate(runs):
        key = (row.step, row.machine, split.overlap, split.precision, split.stages)
        groups.setdefault(key, []).append(number)
    return [
        RunCall(
            runs[group[0]][0].step,
            runs[group[0]][0].machine,
            tuple(runs[i][1] for i in group),
            np.array(group, dtype=np.int64),
        )
        for group in groups.values()
    ]
