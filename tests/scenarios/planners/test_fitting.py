"""Numbers fitted to steps that other numbers made: they come back, by model of GPU, and one odd step moves little."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from partita.errors import InvalidArgumentError
from partita.graph.arrays import Floats
from partita.scenarios import Split
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.fitting import LEAST_ROWS, FitRows, fit_numbers
from partita.scenarios.planners.numbers import PRIORS, PlanNumbers, TrainingNumbers
from partita.scenarios.planners.times.assembly import assembled
from partita.scenarios.planners.times.terms import StepTerms, joined, step_terms
from tests.scenarios.planners.times.drawn import GPT, STEPS, machine

SPLITS = [
    Split(tp=1, dp=16, microbatch=4, microbatches=2, precision="bfloat16"),
    Split(tp=2, dp=8, microbatch=1, microbatches=16, recompute="full", precision="bfloat16"),
    Split(tp=8, dp=2, microbatches=32, precision="bfloat16"),
    Split(tp=8, pp=2, microbatches=8, recompute="full", precision="bfloat16"),
    Split(tp=2, pp=4, dp=2, microbatch=2, microbatches=4, precision="bfloat16"),
    Split(tp=1, pp=4, dp=4, microbatches=32, zero=1, precision="bfloat16"),
]
NARROW = evolve(STEPS["gpt"], model=replace(GPT, hidden=1024, heads=16, intermediate=4096))
TRUE = PlanNumbers(
    **{
        **{name: prior.value for name, prior in PRIORS.items()},
        "products": 0.85,
        "memory": 0.65,
        "launch_ns": 70_000,
        "inside": 0.9,
        "network": 0.8,
    }
)
"""unlike the priors in what all steps show"""


@cache
def terms_on(gpus: str, count: int = len(SPLITS)) -> StepTerms:
    """Steps of a wide and of a narrow model, and of one without fused kernels."""
    of = Configurations.of(SPLITS[:count])
    return joined([step_terms(step, machine(gpus), of) for step in (STEPS["llama"], NARROW, STEPS["megatron"])])


def steps_ns(terms: StepTerms, by: PlanNumbers) -> Floats:
    return assembled(terms, by).step_ns


def rows_of(device: str, by: PlanNumbers) -> FitRows:
    """The steps of a model of GPU that takes what these numbers say."""
    terms = terms_on(f"{device}:16")
    return FitRows(device, terms, steps_ns(terms, by))


@cache
def fitted() -> TrainingNumbers:
    """Of two models of GPU, of which one has slower products."""
    return fit_numbers([rows_of("A100-80GB", TRUE), rows_of("B200-SXM", TRUE._replace(products=1.4))])


def share_left(found: float, true: float, prior: float) -> float:
    """Of the way from the prior to what made the steps, in log space, what is left."""
    return abs(log(found / true) / log(prior / true))


def test_steps_take_what_they_were_made_to_take() -> None:
    for device, products in (("A100-80GB", 0.85), ("B200-SXM", 1.4)):
        rows = rows_of(device, TRUE._replace(products=products))
        assert steps_ns(rows.terms, fitted().of(device)) == pytest.approx(rows.step_ns, rel=0.03)
        before = np.log(steps_ns(rows.terms, PlanNumbers()) / rows.step_ns)
        assert np.abs(before).mean() > 0.05


def test_numbers_that_steps_show_come_back() -> None:
    """Most of the way from the prior, which holds what they show less."""
    for name in ("products", "memory"):
        found, true = getattr(fitted().of("A100-80GB"), name), getattr(TRUE, name)
        assert share_left(found, true, PRIORS[name].value) < 0.5, name
    assert share_left(fitted().of("B200-SXM").products, 1.4, 1.0) < 0.3


def test_what_differs_by_model_of_gpu_is_fitted_for_each() -> None:
    """What all have in common is between; numbers without deviations are the same."""
    a100, b200, common = (fitted().of(name) for name in ("A100-80GB", "B200-SXM", "H100-SXM"))
    assert a100.products < common.products < b200.products
    for name, prior in PRIORS.items():
        assert (getattr(a100, name) == getattr(b200, name)) == (not prior.between), name


def test_intervals_are_wider_where_steps_scatter_and_where_none_were_measured() -> None:
    terms = terms_on("A100-80GB:16")
    odd = np.exp(np.where(np.arange(len(terms.runs.pp)) % 2, 0.3, -0.3))
    calm, wild = (fit_numbers([FitRows("A100-80GB", terms, steps_ns(terms, TRUE) * noise)]) for noise in (1.0, odd))
    assert wild.of("A100-80GB").spread > 0.2 > 4 * calm.of("A100-80GB").spread
    assert wild.of("H100-SXM").spread > wild.of("A100-80GB").spread


def test_a_fit_is_the_same_each_time_and_in_any_order() -> None:
    terms = terms_on("A100-80GB:16", 3)
    times = steps_ns(terms, TRUE)
    one, again = (fit_numbers([FitRows("A100-80GB", terms, times)]) for _ in range(2))
    assert one == again
    backwards = taken(terms, np.arange(len(times))[::-1])
    other = fit_numbers([FitRows("A100-80GB", backwards, times[::-1])]).of("A100-80GB")
    assert other == pytest.approx(one.of("A100-80GB"), rel=1e-3)


def taken(terms: Any, rows: Any) -> Any:  # Any: columns, in tuples and mappings
    """The terms of some rows."""
    if isinstance(terms, np.ndarray):
        return terms[rows]
    if isinstance(terms, dict):
        return {name: taken(column, rows) for name, column in terms.items()}
    return type(terms)(*(taken(column, rows) for column in terms))


def test_one_step_that_took_much_longer_hardly_counts() -> None:
    terms = terms_on("A100-80GB:16")
    times = steps_ns(terms, TRUE)
    slow = times.copy()
    slow[2] *= 3
    plain, moved = (fit_numbers([FitRows("A100-80GB", terms, of)]).of("A100-80GB") for of in (times, slow))
    others = np.arange(len(times)) != 2
    assert steps_ns(terms, moved)[others] == pytest.approx(steps_ns(terms, plain)[others], rel=0.05)


def test_too_few_steps_are_refused() -> None:
    terms = taken(terms_on("A100-80GB:16"), np.arange(LEAST_ROWS - 1))
    with pytest.raises(InvalidArgumentError, match=f"{LEAST_ROWS - 1} measured steps are too few .* give {LEAST_ROWS}"):
        fit_numbers([FitRows("A100-80GB", terms, steps_ns(terms, TRUE))])


def test_two_sets_of_steps_of_one_gpu_are_refused() -> None:
    """Which of the two would count is nobody's guess."""
    with pytest.raises(InvalidArgumentError, match="2 sets of steps are of 'A100-80GB'; join them"):
        fit_numbers([rows_of("A100-80GB", TRUE), rows_of("A100-80GB", TRUE._replace(products=1.4))])


def test_numbers_without_any_say_of_steps_stay_at_their_priors() -> None:
    """One GPU has no collectives, and no transfers of stages."""
    of = Configurations.of([Split(microbatch=batch, precision="bfloat16") for batch in (1, 2, 4)])
    terms = joined([step_terms(step, machine("A100-80GB:16"), of) for step in (STEPS["llama"], NARROW)])
    found = fit_numbers([FitRows("A100-80GB", terms, steps_ns(terms, TRUE))]).of("A100-80GB")
    for name in ("inside", "network", "transfer", "transfer_ns", "gradients"):
        assert getattr(found, name) == pytest.approx(PRIORS[name].value), name
