"""Overheads: what fitting finds in steps that were made with known numbers, and in none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from partita.scenarios.scaling.overheads import (
    PRIOR_EXPOSED,
    PRIOR_SPREAD,
    FittedOverhead,
    Overheads,
    ReplicatedStep,
    fit_overheads,
    slowest_of,
)

COUNTS = (2, 4, 8)


def steps(gpu: str = "K80", hosts: int = 1) -> list[ReplicatedStep]:
    """Steps of networks with few and many bytes for their operations."""
    return [ReplicatedStep(gpu, n, hosts, 1.0, share * n / 8) for share in (0.01, 0.4) for n in COUNTS]


def known(**numbers: float) -> Overheads:
    """Overheads of which nothing is unsure; "_" stands for a blank."""
    return Overheads({name.replace("_", " "): FittedOverhead(value, 0.0) for name, value in numbers.items()}, 0.0)


def test_the_slowest_of_some() -> None:
    """One replica waits for nobody; the expected maxima of 2 and 8 normal numbers are 0.564 and 1.424."""
    assert slowest_of(1) == 0
    assert slowest_of(2) == pytest.approx(0.564, rel=0.05)
    assert slowest_of(8) == pytest.approx(1.424, rel=0.02)
    assert sorted(map(slowest_of, range(1, 70))) == list(map(slowest_of, range(1, 70)))


@settings(max_examples=30)
@given(spread=st.floats(0, 0.1), inside=st.floats(0, 1), between=st.floats(0, 1))
def test_known_numbers_are_found(spread: float, inside: float, between: float) -> None:
    """Steps that were made by the formula are met again to a percent."""
    made = steps() + steps(hosts=2)
    truth = known(K80=spread, inside_a_host=inside, between_hosts=between)
    fitted = fit_overheads(made, [truth.step_s(step) for step in made])
    assert [fitted.step_s(step) for step in made] == pytest.approx([truth.step_s(step) for step in made], rel=0.01)
    assert all(number.value >= 0 for number in fitted.numbers.values())


def test_without_measurements_the_priors_hold() -> None:
    """A model of GPU, or a way, that nothing was measured of has the number that is assumed of all."""
    step = ReplicatedStep("K80", 8, 1, 1.0, 0.1)
    assumed = 1 + PRIOR_SPREAD * slowest_of(8) + PRIOR_EXPOSED * 0.1
    assert fit_overheads([], []).step_s(step) == pytest.approx(assumed)
    others = steps("P100-SXM2", hosts=2)
    assert fit_overheads(others, [1.2] * len(others)).step_s(step) == pytest.approx(assumed)


def test_one_replica_has_no_overhead() -> None:
    """Its row is the calibration, which is met exactly whatever was fitted."""
    alone = ReplicatedStep("K80", 1, 1, 0.7, 0.0)
    assert known(K80=0.5, inside_a_host=1.0).step_s(alone) == 0.7


def test_an_interval_is_wider_where_rows_tell_little() -> None:
    """More bytes than any measured step had, or another model of GPU: what is unsure of the numbers counts."""
    made = steps()
    fitted = fit_overheads(made, [step.simulated_s * 1.05 for step in made])
    like, more = made[0], made[0]._replace(transfers_s=3.0)
    assert fitted.deviation <= fitted.deviation_of(like) < fitted.deviation_of(more)
    assert fitted.deviation_of(like) < fitted.deviation_of(like._replace(gpu="P100-SXM2"))
