"""What faster hardware would change: ten percent of each rate, and `--what-if`, the plan and the best one then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from ...models.split_text import split_text
from ...planners.estimates import Estimate
from ...planners.machine import Machine
from ...planners.what_if import changed, estimated
from ..failure import configuring
from ..screen import Screen
from .document import plan_record
from .plan_request import PlanRequest

_RATES = {
    "products": "products and attention",
    "memory": "memory bandwidth",
    "inside": "links inside a machine",
    "ports": "ports between machines",
    "launches": "launches of kernels",
}


@frozen
class ChangedPlan:
    """The first plan on the changed machines, and the best one there; `factors` are how much faster rates are."""

    changes: Sequence[str]
    factors: Mapping[str, float]
    before: Estimate
    same: Estimate
    best: Estimate


def changed_plan(request: PlanRequest, first: Estimate, screen: Screen) -> ChangedPlan:
    """The first plan again on machines with the changes of the flags; ConfigurationError for a change that is none."""
    with configuring("--what-if"):
        machine = changed(request.machine, request.flags.what_if)
    with screen.working("planning on changed machines"):
        same = estimated(request.step, machine, first.split)
        best = request.searched(machine, top=1).plans[0]
    return ChangedPlan(request.flags.what_if, machine.factors, first, same, best)


def change_lines(it: ChangedPlan) -> Iterator[str]:
    """Both plans beside the first one."""
    faster = [f"{_RATES[rate]} {factor:.3g} times" for rate, factor in it.factors.items() if factor != 1]
    yield f"with {', '.join(it.changes)}: {', '.join(faster) or 'nothing is faster: another link is the slowest'}"
    for plan, words in ((it.same, "the same plan"), (it.best, "the best plan")):
        shorter = 100 * (plan.step_ms / it.before.step_ms - 1)
        named = (
            "" if plan is it.same else ", the same" if it.best.split == it.same.split else f", {split_text(plan.split)}"
        )
        yield f"  {words}  {plan.step_ms:,.1f} ms, {shorter:+.1f} %{named}"


def sensitivity_lines(percents: Mapping[str, float], machine: Machine) -> Iterator[str]:
    """How much of the step ten percent more of each rate saves, the most first."""
    words = {**_RATES, "products": f"peak of {machine.spec.name}"}
    width = max(len(words[rate]) for rate in percents)
    yield "what would help: 10 % more of a rate makes the step shorter by"
    for rate, saved in sorted(percents.items(), key=lambda it: -it[1]):
        yield f"  {words[rate]:<{width}}  {saved:4.1f} %"


def change_record(it: ChangedPlan) -> Mapping[str, object]:
    """The JSON object of a change."""
    return {
        "changes": list(it.changes),
        "factors": dict(it.factors),
        "step_ms": it.same.step_ms,
        "best": plan_record(it.best),
    }
