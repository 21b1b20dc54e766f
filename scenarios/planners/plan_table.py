"""The first plans as a table: a row each, with the columns that tell them apart.

    #  tp  pp  dp  micro  recompute  zero  step ms  80 % of steps  tokens/s     MFU  GiB of 77.6  exposed
    1   2   1  32      1       none     1    812.4        760-869   645,000  41.0 %         61.2    1.5 %

Sizes of 1 in all rows, such as cp and ep of a dense model, have no column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ..models.split import Split
from .estimates import Estimate
from .plan_columns import PlanColumn, telling

PLAN_COLUMNS: tuple[PlanColumn[Estimate], ...] = (
    PlanColumn("#", lambda plan: plan.rank),
    PlanColumn("tp", lambda plan: plan.split.tp),
    PlanColumn("pp", lambda plan: plan.split.pp),
    PlanColumn("dp", lambda plan: plan.split.dp),
    PlanColumn("cp", lambda plan: plan.split.cp, usual="1"),
    PlanColumn("by", lambda plan: plan.split.cp_kind if plan.split.cp > 1 else "", usual=""),
    PlanColumn("ep", lambda plan: plan.split.ep, usual="1"),
    PlanColumn("micro", lambda plan: plan.split.microbatch),
    PlanColumn("v", lambda plan: plan.split.interleave, usual="1"),
    PlanColumn("gpipe", lambda plan: "yes" if plan.split.schedule == "gpipe" else "", usual=""),
    PlanColumn("sp", lambda plan: "yes" if plan.split.sequence_parallel else "", usual=""),
    PlanColumn("recompute", lambda plan: plan.split.recompute, usual="none"),
    PlanColumn("zero", lambda plan: _zero(plan.split), usual="0"),
    PlanColumn("step ms", lambda plan: plan.step_ms, "{:,.1f}"),
    PlanColumn("80 % of steps", lambda plan: f"{plan.step_ms_low:,.0f}-{plan.step_ms_high:,.0f}"),
    PlanColumn("simulated", lambda plan: plan.simulated_step_ms, "{:,.1f}", usual="", unit="ms"),
    PlanColumn("tokens/s", lambda plan: plan.tokens_per_s, "{:,.0f}"),
    PlanColumn("MFU", lambda plan: 100 * plan.mfu, "{:.1f} %", unit="%"),
    PlanColumn("GiB", lambda plan: plan.reserved_gib, "{:.1f}"),
    PlanColumn("exposed", lambda plan: 100 * plan.exposed_comm_ms / plan.step_ms, "{:.1f} %", unit="%"),
    PlanColumn("bubble", lambda plan: 100 * plan.bubble_fraction, "{:.1f} %", usual="0.0 %", unit="%"),
    PlanColumn("$/step", lambda plan: plan.usd_per_step, "{:,.3f}", usual=""),
    PlanColumn("$/run", lambda plan: plan.usd_per_run, "{:,.0f}", usual=""),
    PlanColumn("days", lambda plan: plan.days, "{:,.2f}", usual=""),
)
_NOTES = {
    "by": "by: how cp ranks exchange",
    "micro": "micro: sequences of a micro-batch",
    "v": "v: stages a GPU",
    "sp": "sp: sequence-parallel",
    "zero": "zero: ZeRO stage / ranks that share",
    "GiB": "GiB: reserved on the fullest GPU",
    "exposed": "exposed: communication that nothing hides",
}
_LEAST = (
    "by",
    "days",
    "gpipe",
    "exposed",
    "80 % of steps",
    "sp",
    "$/run",
    "bubble",
    "recompute",
    "$/step",
    "simulated",
)
"""columns that a narrow terminal lacks, in this order"""
_WIDTH = 110


def plan_rows(plans: Sequence[Estimate], width: int | None = None) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of plans; on a terminal of `width` columns without those that matter least."""
    cells = {it.heading: [it.cell(plan) for plan in plans] for it in telling(PLAN_COLUMNS, plans)}
    shown = {f"GiB of {plans[0].memory_limit_gib:.1f}" if name == "GiB" else name: it for name, it in cells.items()}
    for heading in _LEAST:
        if width is not None and _width(shown) > width:
            shown.pop(heading, None)
    return list(shown), [list(row) for row in zip(*shown.values(), strict=True)]


def _zero(split: Split) -> str:
    """The stage, and how many ranks share, where not all do."""
    return f"{split.zero}/{split.zero_group}" if split.zero_group else str(split.zero)


def _width(columns: Mapping[str, Sequence[str]]) -> int:
    return sum(max(map(len, (heading, *cells))) + 2 for heading, cells in columns.items())


def notes_of(headings: Sequence[str]) -> list[str]:
    """What short headings mean, as lines."""
    return textwrap.wrap(
        "; ".join(note for heading, note in _NOTES.items() if any(it.split(" ")[0] == heading for it in headings)),
        _WIDTH,
    )
