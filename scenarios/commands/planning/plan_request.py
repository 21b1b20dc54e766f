"""What is planned: a model on machines, with what flags say of the step, the search and the run.

request = PlanRequest.of(flags)
request.searched(request.machine, top=10)        TrainingPlan: the fastest that fit, priced
request.step                                     PlannedStep, for the closed form of single splits
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

from attrs import evolve, frozen

from ....devices.units import parse_bytes_per_s
from ....graph.display.progress import ProgressCallback, no_progress
from ...models.description import ModelDescription
from ...planners.machine import Machine
from ...planners.money.run_costs import RunCosts
from ...planners.searching.plan import TrainingPlan
from ...planners.searching.search import search
from ...planners.step import PlannedStep, length_of
from ..failure import configuring
from .flags import PlanFlags
from .given import given_calibration, given_model
from .machines import given_machines


@frozen(slots=False, eq=False)
class PlanRequest:
    """The flags, checked, with the model and the machines that they name."""

    flags: PlanFlags
    model: ModelDescription
    machine: Machine

    @classmethod
    def of(cls, flags: PlanFlags) -> Self:
        """ConfigurationError for flags, files and machines that cannot be used."""
        model = given_model(flags)
        cluster, calibration = given_machines(flags), given_calibration(flags)
        with configuring():
            return cls(flags, model, Machine.of(cluster, calibration))

    @cached_property
    def step(self) -> PlannedStep:
        """What a step computes; ConfigurationError for settings that the model does not have."""
        length = length_of(self.model, self.flags.seq)
        settings = self.flags.settings(self.model)
        with configuring():
            return PlannedStep(self.model, length, **settings)

    def searched(
        self, machine: Machine, *, top: int, split: str | None = None, on_progress: ProgressCallback = no_progress
    ) -> TrainingPlan:
        """The best plans on machines, with costs; `split` in place of that of the flags.

        ConfigurationError where nothing fits, and for axes and values that do not exist.
        """
        with configuring():
            plan = search(
                self.model,
                machine,
                global_batch=self.flags.global_batch or 1,
                sequence_length=self.step.sequence_length,
                search=self.flags.search,
                split=split or self.flags.split,
                top=top,
                on_progress=on_progress,
                **self.flags.settings(self.model),
            )
        costs = self.costs(machine)
        assumptions = (*plan.assumptions, *unmeasured(machine), *costs.assumptions)
        return evolve(plan, plans=tuple(costs.added_to(plan.plans)), assumptions=assumptions)

    def costs(self, machine: Machine) -> RunCosts:
        """What steps on machines cost; ConfigurationError for a run or a rate that is none."""
        tokens = self.flags.run_tokens
        with configuring("--storage"):
            rate = None if self.flags.storage is None else parse_bytes_per_s(self.flags.storage)
        with configuring():
            return RunCosts.of(
                machine, self.model, tokens=None if tokens is None else int(tokens), storage_bytes_per_s=rate
            )


def unmeasured(machine: Machine) -> tuple[str, ...]:
    """What of the machines nobody measured, as sentences."""
    name = machine.spec.name
    fits = machine.calibration.device(name)
    kernels, curves = fits is not None and fits.products is not None, machine.inside.model is not None
    said = []
    if not kernels:
        said.append(f"no kernel of {name} was measured: their times are by its numbers and assumed efficiencies")
    if machine.per_host > 1 and not curves:
        said.append(f"no collective of {name} in one machine was measured: their times are by the rates of its links")
    return tuple(said)


def machines_text(machine: Machine) -> str:
    """The machines in words: "64 H100-SXM in 8 machines"."""
    name = machine.spec.name
    return f"{machine.devices} {name}" + (f" in {machine.hosts} machines" if machine.hosts > 1 else " in one machine")
