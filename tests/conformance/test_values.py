"""Fetched values equal TensorFlow's within the tolerance of each case, on the devices that TensorFlow used.

All steps of a case run in order in one session, because variables keep their values. Numbers are compared within the
case's rtol and atol, or the tolerance of their element type if the case has one; everything else exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.actors.sessions.local_session import open_session
from partita.graph.dtypes import Array, dtype_name, from_numpy
from partita.graph.protos import ConfigProto
from tests.conformance.corpus import Case, Step, cases
from tests.runs import HARD_PLACEMENT, cpus, run_one

FAMILIES = ("elementary", "random", "models", "control_flow", "ops", "stateful", "functions", "collectives")
CASES = [case for family in FAMILIES for case in cases(family)]
INLINED = ConfigProto(allow_soft_placement=False)
INLINED.graph_options.optimizer_options.do_function_inlining = True
_INEXACT = ("f", "c", "V")  # numpy's kind of bfloat16 is V


def tolerance(case: Case, theirs: Array) -> tuple[float, float]:
    """rtol and atol for values of this element type."""
    numeric = case.info["numeric"]
    own = numeric.get("per_dtype", {}).get(dtype_name(from_numpy(theirs)))
    return (numeric["rtol"], numeric["atol"]) if own is None else (own, own)


def check_close(case: Case, name: str, ours: Array, theirs: Array) -> None:
    """Equal shape and type; values within the case's tolerance for inexact types, else equal."""
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    if theirs.dtype.kind in _INEXACT:
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        rtol, atol = tolerance(case, theirs)
        near = np.isclose(ours.astype(wide), theirs.astype(wide), rtol, atol, equal_nan=True)
    else:
        near = ours == theirs
    assert np.all(near), f"{name}: {ours} instead of {theirs}"


def fed(case: Case, step: Step) -> dict[str, Array]:
    """The feeds of a step, in the order of the request."""
    return {name: case.feeds[key] for name, key in step.feeds.items() if key is not None}


async def run_case(case: Case, config: ConfigProto, **settings: Any) -> int:
    """Runs all steps, checks their fetches, and returns how many arrays were compared.

    `settings` are keywords of `open_session`.
    """
    compared = 0
    async with open_session(case.graph_def(), cpus(len(case.devices)), config=config, **settings) as session:
        for step in case.steps():
            values = await run_one(session, fed(case, step), step.fetches, step.targets)
            assert len(values) == len(step.expected)
            for name, key, value in zip(step.fetches, step.expected, values, strict=True):
                check_close(case, name, value, case.expected[key])
                compared += 1
    return compared


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
async def test_values_equal_tensorflow(case: Case) -> None:
    """Every fetch of every step has TensorFlow's value."""
    assert await run_case(case, HARD_PLACEMENT) == sum(len(step.fetches) for step in case.steps())


@pytest.mark.parametrize("case", cases("functions"), ids=lambda case: case.path)
async def test_values_are_the_same_when_functions_are_inlined(case: Case) -> None:
    """Inlining functions changes no value."""
    assert await run_case(case, INLINED) == sum(len(step.fetches) for step in case.steps())


def test_every_case_has_steps_and_most_fetch() -> None:
    """All cases have steps, and nearly all compare values."""
    assert len(CASES) >= sum(len(cases(family)) for family in FAMILIES) >= 34
    assert all(case.steps() for case in CASES)
    assert sum(any(step.fetches for step in case.steps()) for case in CASES) >= len(CASES) - 5
