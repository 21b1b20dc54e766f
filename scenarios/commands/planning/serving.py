"""`partita plan --inference`: the replicas and batches of a served model that make the most tokens per second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...models.description import ModelDescription
from ...models.split import Precision, Split
from ...models.split_text import field_texts, read_field
from ...planners.inference.plan import InferenceEstimate, InferencePlan
from ...planners.inference.plan_table import serving_rows
from ...planners.inference.search import search_inference
from ...planners.machine import Machine
from ..failure import configuring
from ..screen import Screen
from .document import document, model_record
from .flags import PlanFlags
from .given import given_calibration, given_model
from .machines import given_machines
from .page import serving_page, write_report
from .plan_request import machines_text
from .search_text import search_lines

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
    if flags.report is not None:
        explained = _explained(found.plans[0], found.machine)
        write_report(serving_page(found, _heading(flags, model, found), explained, flags.command), flags.report, screen)
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
    screen.line(_heading(flags, model, found))
    headings, rows = serving_rows(found.plans)
    screen.table(headings, rows, left=0)
    screen.line("batch: sequences of a replica at a time; GiB: of the fullest GPU, with the cache of full sequences")
    screen.line()
    for line in _explained(found.plans[0], found.machine):
        screen.line(line)
    screen.line()
    for line in search_lines(found.configurations, found.impossible, found.assumptions):
        screen.line(line)
    if flags.report is not None:
        screen.line()
        screen.line(f"report: {flags.report}, to be opened in a browser")


def _heading(flags: PlanFlags, model: ModelDescription, found: InferencePlan) -> str:
    """What is planned, in a line."""
    return (
        f"{flags.family} of {model.parameters / 1e9:.2f} billion parameters served by {machines_text(found.machine)}, "
        f"{found.prompt:,} tokens of a prompt and {found.output:,} of an answer"
    )


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
