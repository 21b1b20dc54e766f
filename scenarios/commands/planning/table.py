"""The first plans as a table: a row each, with the columns that tell them apart.

    #  tp  pp  dp  micro  recompute  zero  step ms  80 % of steps  tokens/s     MFU  GiB of 77.6  exposed
    1   2   1  32      1       none     1    812.4        760-869   645,000  41.0 %         61.2    1.5 %

Sizes of 1 in all rows, such as cp and ep of a dense model, have no column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...planners.estimates import Estimate


class _PlanColumn(NamedTuple):
    """A heading, the cell of a plan, and what it has in all rows where it is left out."""

    heading: str
    cell: Callable[[Estimate], str]
    usual: str | None = None


_COLUMNS = (
    _PlanColumn("#", lambda plan: str(plan.rank)),
    _PlanColumn("tp", lambda plan: str(plan.tp)),
    _PlanColumn("pp", lambda plan: str(plan.pp)),
    _PlanColumn("dp", lambda plan: str(plan.dp)),
    _PlanColumn("cp", lambda plan: str(plan.cp), "1"),
    _PlanColumn("by", lambda plan: plan.cp_kind if plan.cp > 1 else "", ""),
    _PlanColumn("ep", lambda plan: str(plan.ep), "1"),
    _PlanColumn("micro", lambda plan: str(plan.microbatch)),
    _PlanColumn("v", lambda plan: str(plan.interleave), "1"),
    _PlanColumn("gpipe", lambda plan: "yes" if plan.schedule == "gpipe" else "", ""),
    _PlanColumn("sp", lambda plan: "yes" if plan.sequence_parallel else "", ""),
    _PlanColumn("recompute", lambda plan: plan.recompute, "none"),
    _PlanColumn("zero", lambda plan: f"{plan.zero}/{plan.zero_group}" if plan.zero_group else str(plan.zero), "0"),
    _PlanColumn("step ms", lambda plan: f"{plan.step_ms:,.1f}"),
    _PlanColumn("80 % of steps", lambda plan: f"{plan.step_ms_low:,.0f}-{plan.step_ms_high:,.0f}"),
    _PlanColumn(
        "simulated", lambda plan: "" if plan.simulated_step_ms is None else f"{plan.simulated_step_ms:,.1f}", ""
    ),
    _PlanColumn("tokens/s", lambda plan: f"{plan.tokens_per_s:,.0f}"),
    _PlanColumn("MFU", lambda plan: f"{100 * plan.mfu:.1f} %"),
    _PlanColumn("GiB", lambda plan: f"{plan.reserved_gib:.1f}"),
    _PlanColumn("exposed", lambda plan: f"{100 * plan.exposed_comm_ms / plan.step_ms:.1f} %"),
    _PlanColumn("bubble", lambda plan: f"{100 * plan.bubble_fraction:.1f} %", "0.0 %"),
    _PlanColumn("$/step", lambda plan: "" if plan.usd_per_step is None else f"{plan.usd_per_step:,.3f}", ""),
    _PlanColumn("$/run", lambda plan: "" if plan.usd_per_run is None else f"{plan.usd_per_run:,.0f}", ""),
    _PlanColumn("days", lambda plan: "" if plan.days is None else f"{plan.days:,.2f}", ""),
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
    cells = {it.heading: [it.cell(plan) for plan in plans] for it in _COLUMNS if not _is_usual(it, plans)}
    shown = {f"GiB of {plans[0].memory_limit_gib:.1f}" if name == "GiB" else name: it for name, it in cells.items()}
    for heading in _LEAST:
        if width is not None and _width(shown) > width:
            shown.pop(heading, None)
    return list(shown), [list(row) for row in zip(*shown.values(), strict=True)]


def _is_usual(column: _PlanColumn, plans: Sequence[Estimate]) -> bool:
    return all(column.cell(plan) == column.usual for plan in plans)


def _width(columns: Mapping[str, Sequence[str]]) -> int:
    return sum(max(map(len, (heading, *cells))) + 2 for heading, cells in columns.items())


def notes_of(headings: Sequence[str]) -> list[str]:
    """What short headings mean, as lines."""
    return textwrap.wrap(
        "; ".join(note for heading, note in _NOTES.items() if any(it.split(" ")[0] == heading for it in headings)),
        _WIDTH,
    )
