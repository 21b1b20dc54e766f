"""Plans of inference as a table: a row each, with the columns that tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..plan_columns import PlanColumn, telling

if TYPE_CHECKING:
    from .plan import InferenceEstimate

SERVING_COLUMNS: tuple[PlanColumn[InferenceEstimate], ...] = (
    PlanColumn("#", lambda plan: plan.rank),
    PlanColumn("tp", lambda plan: plan.tp),
    PlanColumn("pp", lambda plan: plan.pp, usual="1"),
    PlanColumn("ep", lambda plan: plan.ep, usual="1"),
    PlanColumn("replicas", lambda plan: plan.replicas),
    PlanColumn("batch", lambda plan: plan.batch),
    PlanColumn("prefill ms", lambda plan: plan.prefill_ms, "{:,.1f}"),
    PlanColumn("80 %", lambda plan: f"{plan.prefill_ms_low:,.1f} to {plan.prefill_ms_high:,.1f}"),
    PlanColumn("token ms", lambda plan: plan.decode_ms, "{:,.2f}"),
    PlanColumn("80 % ", lambda plan: f"{plan.decode_ms_low:,.2f} to {plan.decode_ms_high:,.2f}"),
    PlanColumn("tokens/s", lambda plan: plan.tokens_per_s, "{:,.0f}"),
    PlanColumn("cache GiB", lambda plan: plan.kv_cache_gib, "{:.1f}"),
    PlanColumn("GiB", lambda plan: plan.allocated_gib, "{:.1f}"),
    PlanColumn("$/M tokens", lambda plan: plan.usd_per_million_tokens, "{:,.3f}", usual=""),
)


def serving_rows(plans: Sequence[InferenceEstimate]) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of plans; axes of 1 in all rows, and dollars without prices, have no column."""
    columns = telling(SERVING_COLUMNS, plans)
    whole = f"GiB of {plans[0].memory_limit_gib:.1f}"
    headings = [whole if column.heading == "GiB" else column.heading for column in columns]
    return headings, [[column.cell(plan) for column in columns] for plan in plans]
