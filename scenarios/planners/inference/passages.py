"""One step of a replica: from stage to stage of its pipeline, for rows of a search priced together.

layout = ReplicaLayout(tp=2, pp=4, ep=1)
passage    total      all stages one after the other, with the transfers between them
           slowest    the stage that takes longest: with several batches under way, one leaves so often
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NamedTuple

from ....graph.dtypes import item_size
from ...models.split import Precision
from ...models.stage_cut import even_stages
from .durations import Duration, StageClock
from .program import COMPUTE_TYPES, StageProgram, StagePrograms
from .rank import Phase, Rank, ServedModel


class ReplicaLayout(NamedTuple):
    """The ranks of a replica: tp * pp of them have a model, ep such replicas share out its experts."""

    tp: int
    pp: int
    ep: int

    @property
    def devices(self) -> int:
        """Devices of replicas that share experts."""
        return self.tp * self.pp * self.ep

    @property
    def text(self) -> str:
        """As a split is written."""
        return f"tp={self.tp},pp={self.pp},ep={self.ep}"


class Passage(NamedTuple):
    """The time of a step, and of its slowest stage."""

    total: Duration
    slowest: Duration


class Passages:
    """The stages of layouts, and their times on a clock."""

    def __init__(self, model: ServedModel, clock: StageClock, precision: Precision) -> None:
        self._model, self._clock, self._precision = model, clock, precision
        self._stages: dict[tuple[ReplicaLayout, Phase], list[StageProgram]] = {}
        self._programs: dict[tuple[int, int, Phase], StagePrograms] = {}

    def stages(self, layout: ReplicaLayout, phase: Phase) -> list[StageProgram]:
        """The programs of a rank of each stage."""
        if (layout, phase) not in self._stages:
            program = self._program(layout, phase)
            ends = [*accumulate(even_stages(self._model.layers, layout.pp))]
            made = [program.stage(first, end) for first, end in pairwise((0, *ends))]
            self._stages[layout, phase] = made
        return self._stages[layout, phase]

    def learn(self, steps: Iterable[tuple[ReplicaLayout, Phase]]) -> None:
        """Prices what is new in all of these steps at once."""
        self._clock.learn(stage for step in steps for stage in self.stages(*step))

    def passage(self, layout: ReplicaLayout, phase: Phase) -> Passage:
        """The time of a step that `learn` was told of."""
        programs = self.stages(layout, phase)
        alike = {id(program): program for program in programs}  # their contents are long to compare
        known = {key: self._clock.duration(program, layout.tp, layout.ep) for key, program in alike.items()}
        stages = [known[id(program)] for program in programs]
        slowest = max(stages)
        size, ranks = phase.rows * self._model.hidden * item_size(COMPUTE_TYPES[self._precision]), layout.tp * layout.ep
        stages += [self._clock.transfer(size, k * ranks, (k + 1) * ranks) for k in range(layout.pp - 1)]
        return Passage(Duration(*map(sum, zip(*stages, strict=True))), slowest)

    def _program(self, layout: ReplicaLayout, phase: Phase) -> StagePrograms:
        key = layout.tp, layout.ep, phase
        if key not in self._programs:
            self._programs[key] = StagePrograms(Rank(self._model, phase, layout.tp, layout.ep), self._precision)
        return self._programs[key]
