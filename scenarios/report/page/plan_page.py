"""The page of a plan: its table, where time and memory of each row go, and the timelines of what was simulated.

plans_record(TRAINING, plans)    {"columns": [{"key": "tp", ...}], "rows": [{"cells": {"tp": 2, ...},
                                  "time": [{"name": "matrix products", "ms": 561.0}, ...], "run": None}]}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Generic

from attrs import frozen

from ....devices.timing import Timeline
from ...planners.estimates import Estimate
from ...planners.inference.plan import InferenceEstimate
from ...planners.inference.plan_table import SERVING_COLUMNS
from ...planners.plan_columns import Plan, PlanColumn, PlanValue, telling
from ...planners.plan_explanation import MEMORY_WORDS, TIME_WORDS
from ...planners.plan_table import PLAN_COLUMNS
from .page_data import Document, Page
from .run_record import run_record
from .step_page import common_document
from .table_page import is_numeric

_RANK = "#"  # the table of a page numbers its rows itself


@frozen
class PlanKind(Generic[Plan]):
    """What plans of one kind are shown by: columns, and time in ms and memory in GiB by category."""

    columns: Sequence[PlanColumn[Plan]]
    time_ms: Callable[[Plan], Mapping[str, float]]
    memory_gib: Callable[[Plan], Mapping[str, float]]


TRAINING = PlanKind[Estimate](
    PLAN_COLUMNS,
    lambda plan: {TIME_WORDS[name]: ms for name, ms in plan.time_by_category_ms.items()},
    lambda plan: {MEMORY_WORDS[name]: gib for name, gib in plan.memory_by_category_gib.items()},
)
SERVING = PlanKind[InferenceEstimate](
    SERVING_COLUMNS,
    lambda plan: {},  # prompts and tokens do not add up to anything: both are columns
    lambda plan: {
        "keys and values": plan.kv_cache_gib,
        "weights and activations": plan.allocated_gib - plan.kv_cache_gib,
    },
)


def plans_record(
    kind: PlanKind[Plan],
    plans: Sequence[Plan],
    *,
    limit_gib: float,
    explanation: Iterable[str] = (),
    simulated: int = 0,
) -> Document:
    """Plans as a page has them; the first `simulated` of them are those of its runs, in order."""
    columns = [column for column in telling(kind.columns, plans) if column.heading != _RANK]
    return {
        "columns": [
            {
                "key": column.heading,
                "title": column.heading.strip(),
                "unit": column.unit,
                "numeric": is_numeric([_finite(column.value(plan)) for plan in plans]),
            }
            for column in columns
        ],
        "rows": [
            {
                "cells": {column.heading: _finite(column.value(plan)) for column in columns},
                "time": [{"name": name, "ms": ms} for name, ms in kind.time_ms(plan).items() if ms],
                "memory": [{"name": name, "gib": gib} for name, gib in kind.memory_gib(plan).items() if gib],
                "run": number if number < simulated else None,
            }
            for number, plan in enumerate(plans)
        ],
        "limit_gib": limit_gib,
        "explanation": list(explanation),
    }


def _finite(value: PlanValue) -> PlanValue:
    """The value, None for what is infinite: JSON has no number for it."""
    return None if isinstance(value, float) and not isfinite(value) else value


def plan_page(
    title: str,
    plans: Document,
    *,
    headline: Sequence[Document] = (),
    timelines: Sequence[Timeline] = (),
    table: Document | None = None,
    subtitle: str = "",
    command: str = "",
) -> Page:
    """The page of plans, the first of which have `timelines`; `table` is another one beside that of the plans."""
    runs = [run_record(timeline, f"plan {number + 1}", number) for number, timeline in enumerate(timelines)]
    document = {
        **common_document("plan", title, subtitle, command),
        "headline": list(headline),
        "missing": [missing.record(number) for number, run in enumerate(runs) for missing in run.missing],
        "runs": [run.document for run in runs],
        "plans": plans,
        "table": table,
    }
    return Page(document, {name: values for run in runs for name, values in run.arrays.items()})


def training_headline(plan: Estimate, devices: int) -> list[Document]:
    """What is known of the first plan, at a glance."""
    sure = f"80 % of steps: {plan.step_ms_low:,.0f} to {plan.step_ms_high:,.0f} ms"
    return [
        _figure("step time of plan 1", f"{plan.step_ms:,.1f} ms", sure),
        _figure("tokens", f"{plan.tokens_per_s:,.0f} /s", f"on {devices:,} devices"),
        _figure("model FLOP utilisation", f"{100 * plan.mfu:.1f} %"),
        _figure("fullest device", f"{plan.reserved_gib:.1f} GiB", f"of {plan.memory_limit_gib:.1f} GiB"),
        *([_figure("run", f"{plan.days:,.2f} days")] if plan.days is not None else []),
        *([_figure("cost of the run", f"${plan.usd_per_run:,.0f}")] if plan.usd_per_run is not None else []),
    ]


def serving_headline(plan: InferenceEstimate) -> list[Document]:
    """What is known of the first plan, at a glance."""
    first, then = (plan.prefill_ms_low, plan.prefill_ms_high), (plan.decode_ms_low, plan.decode_ms_high)
    return [
        _figure("first token of plan 1", f"{plan.prefill_ms:,.1f} ms", f"80 %: {first[0]:,.1f} to {first[1]:,.1f} ms"),
        _figure("each further token", f"{plan.decode_ms:,.2f} ms", f"80 %: {then[0]:,.2f} to {then[1]:,.2f} ms"),
        _figure("tokens of answers", f"{plan.tokens_per_s:,.0f} /s", f"of {plan.replicas} replicas"),
        _figure("fullest device", f"{plan.allocated_gib:.1f} GiB", f"of {plan.memory_limit_gib:.1f} GiB"),
    ]


def _figure(label: str, text: str, note: str = "") -> Document:
    return {"label": label, "text": text, "note": note, "state": ""}
