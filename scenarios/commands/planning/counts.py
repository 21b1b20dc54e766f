"""`--gpu-counts`: the best plan on each of several numbers of GPUs, and which of them are worth having.

With prices and tokens those are on the front of dollars against days; else of GPU-seconds against the time of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

import numpy as np
from attrs import frozen

from ....graph.display.progress import counted as each_counted
from ...executors.in_flight import in_order
from ...planners.estimates import Estimate
from ...planners.machine import Machine
from ...planners.money.pareto import pareto_front
from ..failure import ConfigurationError, configuring
from ..screen import Screen
from .document import plan_record
from .machines import machines_with
from .plan_request import PlanRequest


@frozen
class CountedPlan:
    """The best plan on so many GPUs; None, with the reason, where there is none."""

    gpus: int
    plan: Estimate | None
    reason: str = ""


def counted(request: PlanRequest, screen: Screen, executor: Executor) -> list[CountedPlan]:
    """The best plan of each number, ascending; ConfigurationError where no number has one."""
    label, many = "planning for numbers of GPUs", len(request.flags.counts)
    with screen.working(label, many) as on_progress:
        calls = [partial(_counted, request, count) for count in request.flags.counts]
        plans = in_order(executor, calls, one_more=each_counted(on_progress, label, many))
    if all(it.plan is None for it in plans):
        raise ConfigurationError(f"--gpu-counts: {plans[0].gpus} GPUs: {plans[0].reason}")
    return plans


def _counted(request: PlanRequest, count: int) -> CountedPlan:
    try:
        cluster = machines_with(request.flags, request.machine.cluster, count)
        with configuring():
            machine = Machine.of(cluster, request.machine.calibration)
        return CountedPlan(count, request.searched(machine, top=1).plans[0])
    except ConfigurationError as error:
        return CountedPlan(count, None, str(error))


def worthwhile(plans: Sequence[CountedPlan]) -> set[int]:
    """The numbers of GPUs that none beats: faster and no dearer, or cheaper and no slower."""
    found = [(it.gpus, it.plan) for it in plans if it.plan is not None]
    priced = all(plan.days is not None and plan.usd_per_run is not None for _, plan in found)
    time = [(plan.days or 0.0) if priced else plan.step_ms for _, plan in found]
    cost = [(plan.usd_per_run or 0.0) if priced else gpus * plan.step_ms for gpus, plan in found]
    return {found[row][0] for row in pareto_front(np.array(time), np.array(cost)).tolist()}


def show_counts(plans: Sequence[CountedPlan], screen: Screen) -> None:
    """Prints a row for each number, and why there is no plan for others."""
    best = worthwhile(plans)
    rows = [_cells(it.gpus, it.plan, it.gpus in best) for it in plans if it.plan is not None]
    headings = ["GPUs", "tp", "pp", "dp", "cp", "ep", "step ms", "tokens/s", "MFU", "GiB", "days", "$/run", "front"]
    usual = {"cp": {"1"}, "ep": {"1"}, "days": {""}, "$/run": {""}}
    shown = [k for k, heading in enumerate(headings) if {row[k] for row in rows} != usual.get(heading)]
    screen.line("the best plan by number of GPUs")
    screen.table([headings[k] for k in shown], [[row[k] for k in shown] for row in rows])
    screen.line("front: no other number is both as fast and as cheap")
    for it in plans:
        if it.plan is None:
            screen.line(f"{it.gpus} GPUs: {it.reason}")


def _cells(gpus: int, plan: Estimate, is_best: bool) -> list[str]:
    split = [str(size) for size in (plan.tp, plan.pp, plan.dp, plan.cp, plan.ep)]
    figures = [
        f"{plan.step_ms:,.1f}",
        f"{plan.tokens_per_s:,.0f}",
        f"{100 * plan.mfu:.1f} %",
        f"{plan.reserved_gib:.1f}",
    ]
    days = "" if plan.days is None else f"{plan.days:,.2f}"
    usd = "" if plan.usd_per_run is None else f"{plan.usd_per_run:,.0f}"
    return [str(gpus), *split, *figures, days, usd, "*" if is_best else ""]


def count_records(plans: Sequence[CountedPlan]) -> list[Mapping[str, object]]:
    """A JSON object for each number."""
    best = worthwhile(plans)
    return [
        {
            "gpus": it.gpus,
            "on_front": it.gpus in best,
            "plan": None if it.plan is None else plan_record(it.plan),
            "reason": it.reason or None,
        }
        for it in plans
    ]
