"""Trains a drawn case and compares it with one device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import trio

from partita.actors import open_session
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array
from partita.scenarios.models.dlrm import DlrmModel
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.model_step import ModelStep
from partita.scenarios.workloads.transformers.embedding_tables import shared_out
from tests.laws.models.cases import HALF, SEQUENCE, ModelCase
from tests.laws.outcomes import DIFFERENT, EQUAL, REFUSED, Outcome
from tests.scenarios.workloads.transformers.joint_weights import by_parts

STEPS = 5
LIMITS = {"float64": 1e-10, "float32": 1e-5, "bfloat16": 1e-2, "float16": 1e-2}
"""how far losses may be off, relative"""
DRIFT = 5e-2
"""how far those of half precision may be off if the same case in float64 is equal: roundings grow from step to step"""


class Trained(NamedTuple):
    """The losses of the steps, and the weights behind them."""

    losses: list[float]
    weights: dict[str, Array]


async def outcome(case: ModelCase) -> Outcome:
    """Runs the case on as many CPUs as it has ranks."""
    try:
        step = built(case)
    except (InvalidArgumentError, UnimplementedError) as error:
        return Outcome(REFUSED, error.message)
    several = await trained(case, step)
    one = await trained(case.one_device, _built_once(case.one_device))
    found = [*_differences(one, several, case, LIMITS[case.split.precision])]
    if found and case.split.precision in HALF and not [*_differences(one, several, case, DRIFT)]:
        return await outcome(replace(case, split=replace(case.split, precision="float64")))
    return Outcome(DIFFERENT, "; ".join(found)) if found else Outcome(EQUAL)


def built(case: ModelCase) -> ModelStep:
    """The step of a case."""
    cluster = f"cpu:{case.split.devices}"
    length = None if case.model.rows_of(1) == case.model.rows_of(2) else SEQUENCE
    return build_model(
        case.model, case.split, cluster, sequence_length=length, fused=case.fused, optimizer=case.optimizer
    )


_built_once = lru_cache(maxsize=8)(built)


async def trained(case: ModelCase, step: ModelStep) -> Trained:
    """Five steps."""
    async with open_session(step.graph, f"cpu:{case.split.devices}") as session:
        await session.run([], targets=step.initialise)
        losses = []
        for number in range(STEPS):
            with trio.fail_after(60):
                (loss,) = await session.run(step.fetches, step.feed(**case.inputs(number)), targets=step.targets)
            losses.append(float(loss))
        weights = {}
        for name in step.weights:
            weights[name] = step.joined(name, await session.run(step.parts_of(name)))
        if isinstance(case.model, DlrmModel):
            weights["embedding/tables"] = _by_table(case.model.tables, step.mesh.dp, weights["embedding/tables"])
    return Trained(losses, by_parts(weights, case.model))


def _by_table(tables: tuple[int, ...], dp: int, rows: Array) -> Array:
    """The rows of all tables in their order, without those that pad the variables of ranks."""
    layout = shared_out(tables, dp)
    firsts = layout.first_rows(tables) + np.arange(dp)[:, None] * layout.rows
    first_of = {table: firsts[at] for at, table in np.ndenumerate(np.array(layout.tables, object)) if table is not None}
    return np.concatenate([rows[first_of[table] : first_of[table] + count] for table, count in enumerate(tables)])


def _differences(one: Trained, several: Trained, case: ModelCase, limit: float) -> Iterator[str]:
    """What is further off than the law allows: losses, in float64 weights too, as far as the tables are not padded."""
    for step, (ours, theirs) in enumerate(zip(several.losses, one.losses, strict=True)):
        if not abs(ours - theirs) <= limit * abs(theirs):
            yield f"loss {step} is {ours}, not {theirs}"
    for name, value in one.weights.items() if case.split.precision == "float64" else ():
        other = several.weights[name]
        rows = min(len(value), len(other)) if value.ndim else None
        scale = max(case.optimizer.learning_rate, float(np.max(np.abs(value))))
        difference = float(np.max(np.abs(other[:rows] - value[:rows])))
        if not difference <= limit * scale:
            yield f"{name} is off by {difference} of {scale}"
