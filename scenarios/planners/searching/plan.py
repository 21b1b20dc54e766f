"""The answer of a search: the fastest configurations that fit, and what became of all others."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from ....graph.display.html import details, lines, notebook_output, table
from ..estimates import Estimate
from ..machine import Machine
from ..plan_table import notes_of, plan_rows
from ..step import PlannedStep


@frozen(eq=False, repr=False)
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

    def __repr__(self) -> str:
        many = f"{len(self.plans)} of {self.fitting:,} that fit"
        return f"<TrainingPlan of {self.global_batch:,} sequences on {self.machine.devices} devices: {many}>"

    def _repr_html_(self) -> str:
        headings, rows = plan_rows(self.plans)
        impossible = [[reason, f"{many:,}"] for reason, many in sorted(self.impossible.items(), key=lambda it: -it[1])]
        return notebook_output(
            f"{len(self.plans)} of {self.fitting:,} splits that fit, the fastest first",
            table(headings, rows, left=0),
            lines(notes_of(headings)),
            details(f"{self.configurations:,} configurations", table(["impossible", "configurations"], impossible)),
            details("left out, and assumed", lines(self.assumptions)),
        )

    @property
    def fitting(self) -> int:
        """How many configurations fit."""
        return self.configurations - sum(self.impossible.values())
