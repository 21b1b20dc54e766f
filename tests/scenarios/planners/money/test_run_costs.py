"""Dollars, joules, days and goodput of estimates follow from what the cluster says, and from nothing else."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from partita.devices import parse_cluster
from partita.errors import InvalidArgumentError
from partita.scenarios import LlamaModel, RunCosts, Split, best_checkpointing, checkpoint_bytes, pareto_plans
from partita.scenarios.planners.estimates import Estimate
from partita.scenarios.planners.machine import Machine

HOUR, DAY = 3600.0, 86400.0
MODEL = LlamaModel(layers=4, hidden=256, heads=4, intermediate=512, vocabulary=1024)
ALL = 'price = "2.50 $/h"\npower = "700 W"\nmtbf = "50000 h"\n'


def machine(keys: str = ALL) -> Machine:
    """Two DGX-H100 with keys of their GPUs."""
    return Machine.of(parse_cluster(f'[[host]]\nmodel = "DGX-H100"\ntasks = 2\n{keys}'))


def plan(step_ms: float = 7200.0, **split: Any) -> Estimate:  # Any: fields of a split
    """An estimate of 16 devices, or as many as the split has, for steps of 1,000 tokens."""
    return Estimate(
        rank=1,
        split=Split(**{"dp": 16, "precision": "bfloat16", **split}),
        step_ms=step_ms,
        step_ms_low=step_ms,
        step_ms_high=step_ms,
        simulated_step_ms=None,
        tokens_per_s=1000 / (step_ms / 1000),
        mfu=0.4,
        time_by_category_ms={},
        bubble_fraction=0.0,
        exposed_comm_ms=0.0,
        allocated_gib=1.0,
        allocated_gib_low=1.0,
        allocated_gib_high=1.0,
        reserved_gib=1.0,
        memory_limit_gib=80.0,
        memory_by_category_gib={},
        fullest_stage=0,
        provenance="fitted",
    )


def costed(estimate: Estimate, keys: str = ALL, **settings: Any) -> Estimate:  # Any: of RunCosts.of
    """The estimate with costs."""
    (result,) = RunCosts.of(machine(keys), MODEL, **settings).added_to([estimate])
    return result


def test_a_step_pays_for_its_devices_and_its_time() -> None:
    """16 devices at 2.50 $/h and 700 W for 7.2 s."""
    result = costed(plan())
    assert result.usd_per_step == pytest.approx(16 * 2.5 * 7.2 / HOUR)
    assert result.joules_per_step == pytest.approx(16 * 700 * 7.2)
    assert (result.usd_per_run, result.days, result.goodput) == (None, None, None)


def test_a_split_of_half_the_devices_pays_half() -> None:
    """And half of them fail half as often."""
    whole, half = costed(plan(), storage_bytes_per_s=1e3), costed(plan(dp=8), storage_bytes_per_s=1e3)
    assert whole.usd_per_step == pytest.approx(2 * (half.usd_per_step or 0))
    assert whole.joules_per_step == pytest.approx(2 * (half.joules_per_step or 0))
    seconds = checkpoint_bytes(MODEL.parameters, "bfloat16") / 1e3
    for result, devices in ((whole, 16), (half, 8)):
        assert result.goodput == pytest.approx(best_checkpointing(50000 * HOUR / devices, seconds, seconds).goodput)


@given(st.integers(1, 10**15), st.floats(1.0, 1e6))
def test_a_run_is_whole_steps(tokens: int, step_ms: float) -> None:
    """Of 1,000 tokens each; the last may be part empty. Dollars are those of the days."""
    result = costed(plan(step_ms), tokens=tokens)
    assert result.days == pytest.approx(-(-tokens // 1000) * step_ms / 1000 / DAY)
    assert result.usd_per_run == pytest.approx(-(-tokens // 1000) * (result.usd_per_step or 0))


def test_failures_make_a_run_longer_and_dearer() -> None:
    """By 1 / goodput; a step costs what it did."""
    without, with_failures = costed(plan(), tokens=10**9), costed(plan(), tokens=10**9, storage_bytes_per_s=1e3)
    assert without.goodput is None
    assert with_failures.goodput is not None
    assert 0 < with_failures.goodput < 1
    assert with_failures.days == pytest.approx((without.days or 0) / with_failures.goodput)
    assert with_failures.usd_per_run == pytest.approx((without.usd_per_run or 0) / with_failures.goodput)
    assert with_failures.usd_per_step == without.usd_per_step


def test_a_run_that_never_ends_has_no_days() -> None:
    """Checkpoints that take longer than any device lives: goodput is 0, and everything is a number of JSON."""
    result = costed(plan(), tokens=10**9, storage_bytes_per_s=1e-3)
    assert (result.goodput, result.days, result.usd_per_run) == (0.0, None, None)
    json.dumps([result.goodput, result.days], allow_nan=False)


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ('power = "700 W"\nmtbf = "50000 h"', {"usd_per_step", "usd_per_run"}),
        ('price = "2.50 $/h"\nmtbf = "50000 h"', {"joules_per_step"}),
        ('price = "2.50 $/h"\npower = "700 W"', {"goodput"}),
        ("", {"usd_per_step", "usd_per_run", "joules_per_step", "goodput"}),
    ],
)
def test_what_the_cluster_does_not_say_is_none(keys: str, missing: set[str]) -> None:
    """And a sentence says so."""
    costs = RunCosts.of(machine(keys), MODEL, tokens=10**9, storage_bytes_per_s=1e9)
    (result,) = costs.added_to([plan()])
    fields = ("usd_per_step", "joules_per_step", "usd_per_run", "days", "goodput")
    assert {name for name in fields if getattr(result, name) is None} == missing
    for key in {"price", "power", "mtbf"} - {line.partition(" ")[0] for line in keys.splitlines()}:
        assert any(f"H100-SXM has no {key} in the cluster" in text for text in costs.assumptions)


def test_failures_without_a_storage_are_left_out_and_said() -> None:
    """No checkpoint is free."""
    costs = RunCosts.of(machine(), MODEL, tokens=10**9)
    assert costs.added_to([plan()])[0].goodput is None
    assert costs.assumptions == (
        "failures are left out: how long a checkpoint takes is not known without the storage's rate",
    )


def test_a_checkpoint_has_masters_of_narrow_weights() -> None:
    """Weights, masters and two moments; float32 weights are their own masters."""
    sizes = [checkpoint_bytes(10, precision) for precision in ("bfloat16", "float16", "fp8", "float32", "float64")]
    assert sizes == [140, 140, 140, 120, 240]


@pytest.mark.parametrize("wrong", [{"tokens": 0}, {"storage_bytes_per_s": -1.0}])
def test_a_run_has_tokens_and_a_storage_a_rate(wrong: dict[str, Any]) -> None:
    """Others are refused by name."""
    with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        RunCosts.of(machine(), MODEL, **wrong)


def test_plans_on_the_front_are_fastest_first() -> None:
    """Those without days or dollars are left out, and those that another beats in both."""
    plans = [
        evolve(plan(), rank=rank, days=days, usd_per_run=usd)
        for rank, (days, usd) in enumerate([(9.0, 1.0), (2.0, 5.0), (4.0, 3.0), (4.0, 4.0), (None, 1.0), (1.0, None)])
    ]
    assert [each.rank for each in pareto_plans(plans)] == [1, 2, 0]
    assert pareto_plans([]) == []


def test_devices_that_never_fail_lose_no_time() -> None:
    """An infinite time between failures is a goodput of 1."""
    costs = RunCosts.of(machine(), MODEL, tokens=10**9, storage_bytes_per_s=1e9)
    never = evolve(costs, costs=evolve(costs.costs, mtbf_s=inf))
    assert never.added_to([plan()])[0].goodput == 1.0
