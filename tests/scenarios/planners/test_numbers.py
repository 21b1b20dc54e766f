"""The numbers of training: those that ship, their priors, and what a model of GPU without steps gets."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.scenarios.planners.faster import numbers_on
from partita.scenarios.planners.machine import RATES
from partita.scenarios.planners.numbers import PRIORS, PlanNumbers, TrainingNumbers, training_numbers

factors = st.dictionaries(st.sampled_from(RATES), st.floats(0.1, 10))
SHARES = ("memory", "optimizer")
"""of a bandwidth, which nothing exceeds"""


def test_measured_models_of_gpus_are_fitted_and_others_transferred() -> None:
    numbers = training_numbers()
    assert {"A100-80GB", "B200-SXM"} <= set(numbers.by_device)
    assert {name: numbers.provenance(name) for name in ("A100-80GB", "B200-SXM", "H100-SXM")} == {
        "A100-80GB": "fitted",
        "B200-SXM": "fitted",
        "H100-SXM": "transferred",
    }
    assert all(numbers.of(name) is own for name, own in numbers.by_device.items())


@given(st.floats(0.001, 1.0))
def test_transferred_numbers_are_those_in_common_with_a_wider_interval(spread: float) -> None:
    common = PlanNumbers(products=1.25, spread=spread)
    numbers = TrainingNumbers({"A100-80GB": PlanNumbers(spread=spread)}, common)
    other = numbers.of("H100-SXM")
    assert other.spread > numbers.of("A100-80GB").spread
    assert other._replace(spread=spread) == common


@pytest.mark.parametrize("name", ["common", *training_numbers().by_device])
def test_numbers_that_ship_are_near_their_priors(name: str) -> None:
    """Within twice what prior and deviation of a model of GPU allow; shares are below 1, and intervals are some %."""
    fitted = training_numbers()
    numbers = fitted.common if name == "common" else fitted.of(name)
    for number, prior in PRIORS.items():
        apart = 2 * (prior.width + prior.between)
        assert 2.72**-apart < getattr(numbers, number) / prior.value < 2.72**apart, number
    assert all(0 < getattr(numbers, share) < 1 for share in SHARES)
    assert 0.01 < numbers.spread < 0.15


def test_what_devices_do_not_differ_in_is_the_same_for_all() -> None:
    fitted = training_numbers()
    for number, prior in PRIORS.items():
        values = {getattr(fitted.of(name), number) for name in (*fitted.by_device, "H100-SXM")}
        assert len(values) == (3 if prior.between else 1), number


def test_every_number_but_the_interval_has_a_prior_in_order() -> None:
    assert [*PRIORS, "spread"] == list(PlanNumbers._fields)
    assert all(prior.value > 0 and prior.width > 0 and prior.between >= 0 for prior in PRIORS.values())


@given(factors, factors)
def test_rates_change_one_after_the_other_as_at_once(first: dict[str, float], then: dict[str, float]) -> None:
    ones = dict.fromkeys(RATES, 1.0)
    first, then = {**ones, **first}, {**ones, **then}
    one_by_one = numbers_on(numbers_on(PlanNumbers(), first), then)
    assert one_by_one == pytest.approx(numbers_on(PlanNumbers(), {name: first[name] * then[name] for name in RATES}))


@pytest.mark.parametrize(
    ("rate", "changed"),
    [
        ("products", {"products": 0.5, "attention": 0.5}),
        ("memory", {"memory": 2.0, "optimizer": 2.0}),
        ("inside", {"inside": 0.5}),
        ("ports", {"network": 2.0}),
        ("launches", {"launch_ns": 0.5, "microbatch_ns": 0.5}),
    ],
)
def test_a_faster_rate_changes_its_own_numbers(rate: str, changed: dict[str, float]) -> None:
    before = PlanNumbers()
    after = numbers_on(before, {**dict.fromkeys(RATES, 1.0), rate: 2.0})
    ratios = {name: getattr(after, name) / getattr(before, name) for name in PlanNumbers._fields}
    assert {name: ratio for name, ratio in ratios.items() if ratio != 1} == changed
