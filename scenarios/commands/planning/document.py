"""The JSON document of `partita plan --json`; docs/cli.md lists its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from ...models.description import ModelDescription
from ...models.sizes import sizes_of
from ...planners.estimates import Estimate

VERSION = 1
_SPLIT = (
    *("dp", "tp", "pp", "cp", "cp_kind", "ep", "microbatch", "microbatches", "interleave", "schedule"),
    *("sequence_parallel", "zero", "zero_group", "recompute", "overlap", "precision"),
)
_FIGURES = (
    *("step_ms", "step_ms_low", "step_ms_high", "simulated_step_ms", "tokens_per_s", "mfu"),
    *("time_by_category_ms", "bubble_fraction", "exposed_comm_ms", "allocated_gib", "allocated_gib_low"),
    *("allocated_gib_high", "reserved_gib", "memory_limit_gib", "memory_by_category_gib"),
    *("usd_per_step", "joules_per_step", "usd_per_run", "days", "goodput"),
)


def document(
    mode: str,
    model: Mapping[str, object],
    cluster: str,
    counts: tuple[int, Mapping[str, int]],
    assumptions: Sequence[str],
    plans: Sequence[Mapping[str, object]],
) -> dict[str, object]:
    """The whole; `counts` are how many configurations were searched, and the impossible ones by reason."""
    return {
        "version": VERSION,
        "mode": mode,
        "model": dict(model),
        "cluster": cluster,
        "configurations": counts[0],
        "impossible": dict(counts[1]),
        "assumptions": list(assumptions),
        "plans": list(plans),
    }


def plan_record(plan: Estimate) -> dict[str, object]:
    """One plan of training: its split and its figures."""
    return {"rank": plan.rank, **{name: _json(getattr(plan, name)) for name in (*_SPLIT, *_FIGURES)}}


def model_record(family: str, model: ModelDescription) -> dict[str, object]:
    """The sizes of a model, with its parameters."""
    counts = {"parameters": model.parameters, "active_parameters": model.active_parameters}
    return {"family": family, **counts, **{name: getattr(model, name) for name in sizes_of(type(model))}}


def _json(value: Any) -> Any:  # Any: JSON
    if isinstance(value, Mapping):
        return {name: _json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value
