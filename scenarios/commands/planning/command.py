"""What `partita plan` plans and prints, in order: a table, the best plan explained, what was searched, what is next.

All of it is planned before anything is printed, so that a wrong flag prints one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from attrs import evolve

from ....devices.timing import Timeline
from ...planners.estimates import Estimate
from ...planners.plan_explanation import compared, explained
from ...planners.plan_table import notes_of, plan_rows
from ...planners.what_if import sensitivities
from ..failure import configuring
from ..screen import Screen
from ..sweeping.where import opened_executor
from .answer import TrainingAnswer
from .changes import change_lines, change_record, changed_plan, sensitivity_lines
from .counts import CountedPlan, count_records, counted, show_counts
from .document import document, model_record, plan_record
from .flags import PlanFlags
from .next_step import next_command
from .page import check_report, training_page, write_report
from .plan_request import PlanRequest, machines_text
from .search_text import search_lines


def plan(flags: PlanFlags, as_json: bool) -> int:
    """Prints the plans of the flags; returns the exit code.

    Raises ConfigurationError for flags that exclude each other, for files, machines, axes and sizes that do not fit
    together, and for a model that fits nowhere.
    """
    flags.check()
    check_report(flags)
    screen = Screen()
    if flags.inference:
        from .serving import plan_serving  # training needs nothing of it

        return plan_serving(flags, screen, as_json)
    answer = _answered(PlanRequest.of(flags), screen)
    if flags.report is not None:
        write_report(training_page(answer, heading(answer.request), flags.command), flags.report, screen)
    if as_json:
        screen.json(_document(answer))
    else:
        _show(answer, screen)
    return 0


def _answered(request: PlanRequest, screen: Screen) -> TrainingAnswer:
    flags = request.flags
    with screen.working("searching") as on_progress:
        found = request.searched(request.machine, top=flags.top, on_progress=on_progress)
    first = found.plans[0]
    change = changed_plan(request, first, screen) if flags.what_if else None
    counts: Sequence[CountedPlan] = ()
    timelines: list[Timeline] = []
    with opened_executor(flags.where) as executor:
        if flags.counts:
            counts = counted(request, screen, executor)
        if flags.simulated:
            plans = _with_simulations(request, found.plans, timelines, screen, executor)
            found = evolve(found, plans=plans)
    saved = sensitivities(request.step, request.machine, first.split)
    return TrainingAnswer(request, found, saved, change, counts, timelines)


def _with_simulations(
    request: PlanRequest, plans: Sequence[Estimate], timelines: list[Timeline], screen: Screen, executor: Executor
) -> tuple[Estimate, ...]:
    """The plans, the first ones with the time of their graph on the simulated machines; a page keeps the timelines."""
    from ...planners.simulated.step import with_simulated  # builders and the engine take a second to load

    machine, many = request.machine, min(request.flags.simulated, len(plans))
    with screen.working("simulating the built graphs", many) as on_progress, configuring("--simulate"):
        timed = with_simulated(
            request.step,
            plans,
            machine.cluster,
            count=many,
            calibration=machine.calibration,
            executor=executor,
            on_progress=on_progress,
            on_timeline=timelines.append if request.flags.report is not None else None,
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
    screen.line(heading(request))
    headings, rows = plan_rows(found.plans, screen.width)
    screen.table(headings, rows, left=0)
    for note in notes_of(headings):
        screen.line(note)
    screen.line()
    for line in explained(first, request.machine):
        screen.line(line)
    for each in found.plans[1:]:
        if each.simulated_step_ms is not None:
            screen.line(compared(each))
    for line in sensitivity_lines(answer.saved_percent, request.machine):
        screen.line(line)
    screen.line()
    for line in search_lines(found.configurations, found.impossible, found.assumptions):
        screen.line(line)
    if answer.change is not None:
        screen.line()
        for line in change_lines(answer.change):
            screen.line(line)
    if answer.counts:
        screen.line()
        show_counts(answer.counts, screen)
    screen.line()
    screen.line("build and simulate plan 1")
    for line in next_command(request.flags, request.model, first.split, request.step.sequence_length):
        screen.line(f"  {line}")
    if request.flags.report is not None:
        screen.line()
        screen.line(f"report: {request.flags.report}, to be opened in a browser")


def heading(request: PlanRequest) -> str:
    """What is planned, in a line."""
    model, step = request.model, request.step
    of_all = (
        f", {model.active_parameters / 1e9:.2f} of them active" if model.active_parameters < model.parameters else ""
    )
    of_step = f"{request.flags.global_batch:,} sequences of {step.sequence_length:,} tokens a step"
    return (
        f"{request.flags.family} of {model.parameters / 1e9:.2f} billion parameters{of_all} on "
        f"{machines_text(request.machine)}, {of_step}"
    )
