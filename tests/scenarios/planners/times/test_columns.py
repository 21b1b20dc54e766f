"""Laws of the time of a step that hold for every split, model and machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.scenarios import Split
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.vit import VitModel
from partita.scenarios.planners.estimates import TIME_CATEGORIES
from partita.scenarios.planners.machine import RATES
from partita.scenarios.planners.numbers import PlanNumbers, TrainingNumbers
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.times.drawn import STEPS, few, machine, parts_of, same, steps, tables, times_of

gpus = st.sampled_from(["A100-80GB:64", "H100-SXM:64", "B200-SXM:64"])
BF16 = Split(precision="bfloat16")


@few
@given(steps, gpus, tables(), st.integers(0, 99))
def test_a_row_has_the_same_answer_as_alone(step: PlannedStep, on: str, rows: list[Split], number: int) -> None:
    number %= len(rows)
    together, alone = (parts_of(times_of(step, machine(on), *of)) for of in (rows, [rows[number]]))
    for name, column in alone.items():
        assert same(together[name][number], column[0]), name


@few
@given(steps, gpus, tables())
def test_categories_are_the_parts_of_a_step(step: PlannedStep, on: str, rows: list[Split]) -> None:
    times = times_of(step, machine(on), *rows)
    parts = times.by_category
    assert tuple(parts) == TIME_CATEGORIES
    assert all((column >= 0).all() for column in parts.values())
    assert same(np.sum([*parts.values()], axis=0), times.step_ns)
    assert same(np.sum([parts[name] for name in ("tp", "cp", "ep", "dp", "pp")], axis=0), times.exposed_ns)
    assert same(times.bubble_fraction * times.step_ns, parts["bubble"])
    for axis in ("tp", "cp", "pp"):
        assert (parts[axis] > 0).tolist() == [getattr(row, axis) > 1 for row in rows], axis
    assert ((parts["bubble"] > 0) == (parts["pp"] > 0)).all()


@few
@given(steps, tables(), st.floats(0.01, 1))
def test_intervals_are_as_wide_as_their_number_says(step: PlannedStep, rows: list[Split], spread: float) -> None:
    numbers = TrainingNumbers({"A100-80GB": PlanNumbers(spread=spread)}, PlanNumbers())
    times = times_of(step, machine(), *rows, numbers=numbers)
    assert np.allclose(np.log(times.high_ns / times.step_ns), spread)
    assert np.allclose(np.log(times.step_ns / times.low_ns), spread)


@few
@given(steps, tables(), st.dictionaries(st.sampled_from(RATES), st.floats(1, 10), min_size=1))
def test_faster_rates_make_no_step_slower(step: PlannedStep, rows: list[Split], factors: dict[str, float]) -> None:
    slow, fast = (times_of(step, on, *rows).step_ns for on in (machine(), machine().faster(factors)))
    assert (fast <= slow * (1 + 1e-9)).all()


@pytest.mark.parametrize("rate", RATES)
def test_each_rate_counts(rate: str) -> None:
    """In a split that uses all of them, and in categories that rest on it."""
    rows = Split(tp=2, dp=16, pp=2, microbatches=4, precision="bfloat16")
    slow, fast = (times_of(STEPS["llama"], on, rows) for on in (machine(), machine().faster({rate: 2})))
    assert fast.step_ns < slow.step_ns
    of = {"products": ("products", "attention"), "memory": ("memory_bound", "optimizer"), "inside": ("tp",)}
    for name in of.get(rate, ()):
        assert fast.by_category[name] < slow.by_category[name], name


@pytest.mark.parametrize(
    "model", [VitModel(layers=12, hidden=768, heads=12, intermediate=3072), BertModel(2, 128, 2, 512)]
)
def test_other_families_are_refused(model: Any) -> None:
    with pytest.raises(UnimplementedError, match=type(model).__name__):
        times_of(PlannedStep(model, 128), machine(), BF16)


def test_other_precisions_are_refused() -> None:
    with pytest.raises(UnimplementedError, match="precision='float64' has no closed form; use bfloat16, float16, fp8"):
        times_of(STEPS["llama"], machine(), Split(precision="float64"))
    with pytest.raises(InvalidArgumentError, match="A100-80GB has no fp8 units"):
        times_of(STEPS["llama"], machine(), Split(precision="fp8"))


def test_whether_numbers_were_fitted_is_said() -> None:
    a100, h100 = (times_of(STEPS["llama"], machine(on), BF16) for on in ("A100-80GB:64", "H100-SXM:64"))
    assert (a100.provenance, h100.provenance) == ("fitted", "transferred")
    assert h100.high_ns / h100.low_ns > a100.high_ns / a100.low_ns
