"""`partita plan --inference`: the replicas and batches of a served model that make the most tokens per second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.description import ModelDescription
from ...models.split import Precision, Split
from ...models.split_text import field_texts, read_field
from ...planners.inference.plan import InferenceEstimate, InferencePlan
from ...planners.inference.search import search_inference
from ...planners.machine import Machine
from ..failure import configuring
from ..screen import Screen
from .document import document, model_record
from .flags import PlanFlags
from .given import given_calibration, given_model
from .machines import given_machines
from .plan_request import machines_text
from .search_text import show_search

_AXES = ("tp", "pp", "ep")
_USUAL: Precision = "bfloat16"


def plan_serving(flags: PlanFlags, screen: Screen, as_json: bool) -> int:
    """Prints the plans; returns the exit code. Raises as `plan`."""
    model, machines = given_model(flags), given_machines(flags)
    fixed, precision = _fixed(flags.split)
    with screen.working("searching"), configuring():
        found = search_inference(
            model,
            machines,
            prompt=flags.prompt or 1,
            output=flags.output or 1,
            batches=flags.batches,
            tpot_ms=flags.tpot_ms,
            split=fixed,
            top=flags.top,
            calibration=given_calibration(flags),
            usd_per_hour=machines.operating_costs.usd_per_hour,
            precision=precision,
        )
    if as_json:
        screen.json(_document(flags, model, found))
    else:
        _show(flags, model, found, screen)
    return 0


def _fixed(text: str | None) -> tuple[Mapping[str, Any], Precision]:  # Any: numbers
    """Of "tp=1+2,precision=fp8" the values of axes, and the precision; ConfigurationError for other fields."""
    with configuring("--split"):
        texts = field_texts(text or "", {*_AXES, "precision"})
        fixed = {axis: [read_field(axis, one) for one in texts[axis].split("+")] for axis in _AXES if axis in texts}
        return fixed, Split.parse(f"precision={texts.get('precision', _USUAL)}").precision


def _document(flags: PlanFlags, model: ModelDescription, found: InferencePlan) -> dict[str, object]:
    sizes: dict[str, object] = {**model_record(flags.family, model), "prompt": found.prompt, "output": found.output}
    return document(
        "inference",
        sizes,
        machines_text(found.machine),
        (found.configurations, found.impossible),
        found.assumptions,
        [each.record for each in found.plans],
    )


def _show(flags: PlanFlags, model: ModelDescription, found: InferencePlan, screen: Screen) -> None:
    screen.line(
        f"{flags.family} of {model.parameters / 1e9:.2f} billion parameters served by {machines_text(found.machine)}, "
        f"{found.prompt:,} tokens of a prompt and {found.output:,} of an answer"
    )
    headings, rows = serving_rows(found.plans)
    screen.table(headings, rows, left=0)
    screen.line("batch: sequences of a replica at a time; GiB: of the fullest GPU, with the cache of full sequences")
    screen.line()
    for line in _explained(found.plans[0], found.machine):
        screen.line(line)
    screen.line()
    show_search(found.configurations, found.impossible, found.assumptions, screen)


def serving_rows(plans: tuple[InferenceEstimate, ...]) -> tuple[list[str], list[list[str]]]:
    """The headings and the rows of plans; axes of 1 in all rows, and dollars without prices, have no column."""
    columns = {
        "#": [str(it.rank) for it in plans],
        **{axis: [str(getattr(it, axis)) for it in plans] for axis in _AXES},
        "replicas": [str(it.replicas) for it in plans],
        "batch": [str(it.batch) for it in plans],
        "prefill ms": [f"{it.prefill_ms:,.1f}" for it in plans],
        "80 %": [f"{it.prefill_ms_low:,.1f} to {it.prefill_ms_high:,.1f}" for it in plans],
        "token ms": [f"{it.decode_ms:,.2f}" for it in plans],
        "80 % ": [f"{it.decode_ms_low:,.2f} to {it.decode_ms_high:,.2f}" for it in plans],
        "tokens/s": [f"{it.tokens_per_s:,.0f}" for it in plans],
        "cache GiB": [f"{it.kv_cache_gib:.1f}" for it in plans],
        f"GiB of {plans[0].memory_limit_gib:.1f}": [f"{it.allocated_gib:.1f}" for it in plans],
        "$/M tokens": [_usd(it.usd_per_million_tokens) for it in plans],
    }
    usual = {"pp": {"1"}, "ep": {"1"}, "$/M tokens": {""}}
    shown = {name: cells for name, cells in columns.items() if set(cells) != usual.get(name)}
    return list(shown), [list(row) for row in zip(*shown.values(), strict=True)]


def _usd(price: float | None) -> str:
    return "" if price is None else f"{price:,.3f}"


def _explained(plan: InferenceEstimate, machine: Machine) -> list[str]:
    """The first plan in words."""
    lines = [
        f"plan 1: {plan.replicas} replicas of {plan.tp * plan.pp} {machine.spec.name}, {plan.batch} sequences each",
        f"  the first token of an idle replica comes after {plan.prefill_ms:,.1f} ms, each further one of a full batch "
        f"after {plan.decode_ms:,.2f} ms",
        f"  all together make {plan.tokens_per_s:,.0f} tokens/s of answers; a replica has memory for "
        f"{plan.most_batch} sequences",
    ]
    if plan.usd_per_million_tokens is not None:
        lines.append(f"  a million tokens cost ${plan.usd_per_million_tokens:,.3f}")
    return lines
