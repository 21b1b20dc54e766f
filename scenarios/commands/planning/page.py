"""`partita plan --report`: what the command prints, as a page with a table, bars and the simulated timelines.

With --gpu-counts the page has a table of the best plan by number of GPUs, and a chart over that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...planners.inference.plan import InferencePlan
from ...planners.plan_explanation import compared, in_sentences
from ...report.page.html import write_page
from ...report.page.page_data import Document, Page
from ...report.page.plan_page import (
    SERVING,
    TRAINING,
    plan_page,
    plans_record,
    serving_headline,
    training_headline,
)
from ...report.page.report import checked_path
from ...report.page.table_page import Cell, TableColumn, table_record
from ..failure import configuring
from ..outputs import check_outputs
from ..screen import Screen
from .answer import TrainingAnswer
from .changes import change_lines, sensitivity_lines
from .counts import CountedPlan, worthwhile
from .flags import PlanFlags
from .search_text import search_lines

_SIMULATED = (
    "the timelines are of the built graphs: a step takes longer than its timeline by what is in no graph, such as the "
    "host's time for micro-batches"
)
_COUNTS = (
    TableColumn("gpus", "GPUs"),
    *(TableColumn(axis, axis) for axis in ("tp", "pp", "dp", "cp", "ep")),
    TableColumn("step_ms", "step", "ms"),
    TableColumn("tokens_per_s", "tokens/s"),
    TableColumn("mfu", "MFU", "%"),
    TableColumn("gib", "reserved", "GiB"),
    TableColumn("days", "run", "days"),
    TableColumn("usd_per_run", "run", "$"),
    TableColumn("front", "as fast and as cheap as none"),
    TableColumn("reason", "why there is none"),
)
_VALUES = ("tokens_per_s", "step_ms", "mfu", "gib", "days", "usd_per_run")


def check_report(flags: PlanFlags) -> None:
    """ConfigurationError for a page that cannot be written, before anything is planned."""
    if flags.report is None:
        return
    calibrations = {f"--calibration {path}": path for path in flags.calibrations}
    check_outputs({"--report": flags.report}, {"--config": flags.config, "--cluster": flags.cluster, **calibrations})
    with configuring("--report"):
        checked_path(flags.report)


def training_page(answer: TrainingAnswer, heading: str, command: str) -> Page:
    """The page of plans for training."""
    found, machine = answer.plan, answer.request.machine
    plans = plans_record(
        TRAINING,
        found.plans,
        limit_gib=found.plans[0].memory_limit_gib,
        explanation=_training_lines(answer),
        simulated=len(answer.timelines),
    )
    return plan_page(
        "Plans for training",
        plans,
        headline=training_headline(found.plans[0], machine.devices),
        timelines=answer.timelines,
        table=_counts_table(answer.counts) if answer.counts else None,
        subtitle=heading,
        command=command,
    )


def serving_page(found: InferencePlan, heading: str, explained: Sequence[str], command: str) -> Page:
    """The page of plans for serving."""
    searched = search_lines(found.configurations, found.impossible, found.assumptions)
    explanation = [*(line.strip() for line in explained), *_sentences(searched)]
    plans = plans_record(SERVING, found.plans, limit_gib=found.plans[0].memory_limit_gib, explanation=explanation)
    headline = serving_headline(found.plans[0])
    return plan_page("Plans for serving", plans, headline=headline, subtitle=heading, command=command)


def write_report(page: Page, path: Path, screen: Screen) -> None:
    """Writes the page; ConfigurationError where it cannot be."""
    with screen.working(f"writing {path.name}"), configuring("--report"):
        write_page(page, path)


def _training_lines(answer: TrainingAnswer) -> Iterator[str]:
    """What is printed beside the tables, as sentences."""
    found, machine = answer.plan, answer.request.machine
    yield from in_sentences(found.plans[0], machine)
    yield from (compared(plan) for plan in found.plans if plan.simulated_step_ms is not None)
    if answer.timelines:
        yield _SIMULATED
    yield from _sentences(sensitivity_lines(answer.saved_percent, machine))
    if answer.change is not None:
        yield from _sentences(change_lines(answer.change))
    yield from _sentences(search_lines(found.configurations, found.impossible, found.assumptions))


def _sentences(lines: Iterator[str]) -> Iterator[str]:
    """Lines with those that belong to them, which begin with two blanks, as one sentence each."""
    parts: list[str] = []
    for line in lines:
        if parts and not line.startswith("  "):
            yield _joined(parts)
            parts = []
        parts.append(" ".join(line.split()))
    if parts:
        yield _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    return f"{parts[0].rstrip(':')}: {'; '.join(parts[1:])}" if parts[1:] else parts[0]


def _counts_table(counts: Sequence[CountedPlan]) -> Document:
    """The best plan by number of GPUs; columns in which no row has anything are left out."""
    best = worthwhile(counts)
    rows = [_count_row(it, it.gpus in best) for it in counts]
    kept = [place for place in range(len(_COUNTS)) if any(row[place] not in (None, "") for row in rows)]
    columns = [_COUNTS[place] for place in kept]
    keys = {column.key for column in columns}
    return table_record(
        columns,
        [[row[place] for place in kept] for row in rows],
        axes=["gpus"],
        values=[key for key in _VALUES if key in keys],
    )


def _count_row(counted: CountedPlan, is_best: bool) -> list[Cell]:
    plan = counted.plan
    if plan is None:
        return [counted.gpus, *[None] * (len(_COUNTS) - 2), counted.reason]
    split = plan.split
    sizes: list[Cell] = [counted.gpus, split.tp, split.pp, split.dp, split.cp, split.ep]
    figures = [plan.step_ms, plan.tokens_per_s, 100 * plan.mfu, plan.reserved_gib, plan.days, plan.usd_per_run]
    return [*sizes, *figures, "yes" if is_best else "", ""]
