"""What `partita plan` plans and prints, in order: a table, the best plan explained, what was searched, what is next.

All of it is planned before anything is printed, so that a wrong flag prints one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from ...planners.estimates import Estimate
from ...planners.searching.plan import TrainingPlan
from ...planners.what_if import sensitivities
from ..failure import configuring
from ..screen import Screen
from .changes import ChangedPlan, change_record, changed_plan, show_change, show_sensitivities
from .counts import CountedPlan, count_records, counted, show_counts
from .document import document, model_record, plan_record
from .explanation import compared, explained
from .flags import PlanFlags
from .next_step import next_command
from .plan_request import PlanRequest, machines_text
from .search_text import show_search
from .table import notes_of, plan_rows


@frozen
class TrainingAnswer:
    """All that is printed."""

    request: PlanRequest
    plan: TrainingPlan
    saved_percent: Mapping[str, float]
    change: ChangedPlan | None
    counts: Sequence[CountedPlan]


def plan(flags: PlanFlags, as_json: bool) -> int:
    """Prints the plans of the flags; returns the exit code.

    Raises ConfigurationError for flags that exclude each other, for files, machines, axes and sizes that do not fit
    together, and for a model that fits nowhere.
    """
    flags.check()
    screen = Screen()
    if flags.inference:
        from .serving import plan_serving  # training needs nothing of it

        return plan_serving(flags, screen, as_json)
    answer = _answered(PlanRequest.of(flags), screen)
    if as_json:
        screen.json(_document(answer))
    else:
        _show(answer, screen)
    return 0


def _answered(request: PlanRequest, screen: Screen) -> TrainingAnswer:
    flags = request.flags
    with screen.working("searching"):
        found = request.searched(request.machine, top=flags.top)
    first = found.plans[0]
    change = changed_plan(request, first, screen) if flags.what_if else None
    counts = counted(request, screen) if flags.counts else ()
    if flags.simulated:
        found = evolve(found, plans=_with_simulations(request, found.plans, screen))
    return TrainingAnswer(request, found, sensitivities(request.step, request.machine, first.split), change, counts)


def _with_simulations(request: PlanRequest, plans: Sequence[Estimate], screen: Screen) -> tuple[Estimate, ...]:
    """The plans, the first ones with the time of their graph on the simulated machines."""
    from ...planners.simulated.step import with_simulated  # builders and the engine take a second to load

    machine, many = request.machine, min(request.flags.simulated, len(plans))
    with screen.working("simulating the built graphs", many) as advance, configuring("--simulate"):
        timed = with_simulated(
            request.step, plans, machine.cluster, count=many, calibration=machine.calibration, progress=advance
        )
    return tuple(timed)


def _document(answer: TrainingAnswer) -> dict[str, object]:
    request, found = answer.request, answer.plan
    model: dict[str, Any] = model_record(request.flags.family, request.model)
    model["sequence_length"] = request.step.sequence_length
    model["global_batch"] = request.flags.global_batch
    whole = document(
        "training",
        model,
        machines_text(request.machine),
        (found.configurations, found.impossible),
        found.assumptions,
        [plan_record(each) for each in found.plans],
    )
    if answer.change is not None:
        whole["what_if"] = {**change_record(answer.change), "saved_percent": dict(answer.saved_percent)}
    if answer.counts:
        whole["gpu_counts"] = count_records(answer.counts)
    return whole


def _show(answer: TrainingAnswer, screen: Screen) -> None:
    request, found = answer.request, answer.plan
    first = found.plans[0]
    screen.line(_heading(request))
    headings, rows = plan_rows(found.plans, screen.out.width if screen.out.is_terminal else None)
    screen.table(headings, rows, left=0)
    for note in notes_of(headings):
        screen.line(note)
    screen.line()
    for line in explained(first, request.machine):
        screen.line(line)
    for each in found.plans[1:]:
        if each.simulated_step_ms is not None:
            screen.line(compared(each))
    show_sensitivities(answer.saved_percent, request.machine, screen)
    screen.line()
    show_search(found.configurations, found.impossible, found.assumptions, screen)
    if answer.change is not None:
        screen.line()
        show_change(answer.change, screen)
    if answer.counts:
        screen.line()
        show_counts(answer.counts, screen)
    screen.line()
    screen.line("build and simulate plan 1")
    for line in next_command(request.flags, request.model, first.split, request.step.sequence_length):
        screen.line(f"  {line}")


def _heading(request: PlanRequest) -> str:
    model, step = request.model, request.step
    of_all = (
        f", {model.active_parameters / 1e9:.2f} of them active" if model.active_parameters < model.parameters else ""
    )
    of_step = f"{request.flags.global_batch:,} sequences of {step.sequence_length:,} tokens a step"
    return (
        f"{request.flags.family} of {model.parameters / 1e9:.2f} billion parameters{of_all} on "
        f"{machines_text(request.machine)}, {of_step}"
    )
