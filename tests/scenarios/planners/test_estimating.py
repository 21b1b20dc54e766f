"""Estimates of a split: the closed forms of time and memory together, rates by their formulas, refusals with hints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import Cluster, device_spec, machines_of
from partita.devices.device import Device
from partita.devices.timing.fits.products import bf16_peak
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.parallel.pipelines import schedules
from partita.graph.parallel.pipelines.schedules import Schedule, find_schedule, register_schedule
from partita.scenarios import GptModel, Split
from partita.scenarios.models.vit import VitModel
from partita.scenarios.planners import estimate
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.estimates import MEMORY_CATEGORIES, TIME_CATEGORIES, Estimate
from partita.scenarios.planners.estimating import estimates_of
from partita.scenarios.planners.memory import memory_columns
from partita.scenarios.planners.times import step_times
from tests.scenarios.planners.times.drawn import LENGTH, LLAMA, MOE, STEPS, machine, splits

few = settings(max_examples=10)
SPLIT = Split(tp=8, dp=4, microbatches=8, precision="bfloat16")
models: Any = st.sampled_from([STEPS[name].model for name in ("gpt", "llama", "moe")])


def of(split: Split, model: Any = LLAMA, on: str = "A100-80GB:64", **beside: Any) -> Estimate:
    return estimate(model, split, machine(on), **{"sequence_length": LENGTH, **beside})


def fitting(model: Any, split: Split) -> Split:
    """Without experts for a model that has none."""
    return split if model == MOE else replace(split, ep=1)


@few
@given(models, splits(), st.booleans())
def test_rates_follow_from_the_time(model: Any, split: Split, trains: bool) -> None:
    """mfu = (6 N + 12 L h s) tokens / (time * devices * peak), a third of it for a forward pass alone."""
    if not trains:
        split = replace(split, zero=0, zero_group=None, recompute="none")
    said = of(fitting(model, split), model, training=trains)
    seconds, tokens = said.step_ms / 1e3, split.global_batch * LENGTH
    assert said.tokens_per_s == pytest.approx(tokens / seconds)
    operations = 6 * model.active_parameters + 12 * model.layers * model.hidden * LENGTH
    peak = bf16_peak(device_spec("A100-80GB"))
    assert peak == 312e12
    mfu = operations / (1 if trains else 3) * tokens / (seconds * split.devices * peak)
    assert said.mfu == pytest.approx(mfu)
    assert 0 < said.mfu < 0.8


@few
@given(models, splits())
def test_parts_add_up(model: Any, split: Split) -> None:
    """Of time, and of memory; intervals hold what they are of."""
    said = of(fitting(model, split), model)
    assert tuple(said.time_by_category_ms) == TIME_CATEGORIES
    assert sum(said.time_by_category_ms.values()) == pytest.approx(said.step_ms)
    assert said.step_ms_low < said.step_ms < said.step_ms_high
    assert set(said.memory_by_category_gib) == set(MEMORY_CATEGORIES)
    assert sum(said.memory_by_category_gib.values()) == pytest.approx(said.reserved_gib)
    assert said.allocated_gib_low <= said.allocated_gib <= said.allocated_gib_high
    assert said.fits == (said.reserved_gib <= said.memory_limit_gib)
    assert 0 <= said.fullest_stage < split.pp


@few
@given(st.lists(splits(has_experts=False), min_size=2, max_size=6))
def test_rows_of_a_table_are_ranked_in_the_order_asked_for(rows: list[Split]) -> None:
    """Each is the estimate of its split alone, but for its rank."""
    step, table = STEPS["llama"], Configurations.of(rows)
    order = list(range(len(rows)))[::-1]
    said = estimates_of(step, machine(), table, step_times(step, machine(), table), memory_columns(step, table), order)
    assert [it.rank for it in said] == list(range(1, len(rows) + 1))
    for it, row in zip(said, order, strict=True):
        alone = of(rows[row])
        assert it.split.devices == rows[row].devices
        assert (it.step_ms, it.reserved_gib) == pytest.approx((alone.step_ms, alone.reserved_gib))


def test_fields_of_the_split_are_fields_of_the_estimate() -> None:
    said = of(SPLIT)
    assert (said.split, said.tp, said.microbatches, said.recompute) == (SPLIT, 8, 8, "none")
    assert said.simulated_step_ms is said.usd_per_step is said.days is None
    with pytest.raises(AttributeError, match="no field 'tensor_parallel'"):
        _ = said.tensor_parallel


def test_a_cluster_is_as_good_as_its_machine() -> None:
    cluster = machines_of("A100-80GB:64")
    assert estimate(LLAMA, SPLIT, cluster, sequence_length=LENGTH) == of(SPLIT)


def test_whether_numbers_were_fitted_is_said() -> None:
    assert {of(SPLIT, on=gpus).provenance for gpus in ("A100-80GB:64", "B200-SXM:64")} == {"fitted"}
    assert of(SPLIT, on="H100-SXM:64").provenance == "transferred"


def test_a_sequence_is_as_long_as_positions_unless_given() -> None:
    """4096 tokens where a model has no positions."""
    gpt = GptModel(layers=4, hidden=1024, heads=16, positions=512)
    split = Split(dp=8, precision="bfloat16")
    assert estimate(gpt, split, machine()) == estimate(gpt, split, machine(), sequence_length=512)
    llama = estimate(LLAMA, split, machine())
    assert llama == of(split)
    with pytest.raises(InvalidArgumentError, match="sequence_length=1024 is more than the model's positions=512"):
        estimate(gpt, split, machine(), sequence_length=1024)


def test_settings_are_those_of_a_step() -> None:
    assert of(SPLIT, gradient_bytes=2).time_by_category_ms["dp"] < of(SPLIT).time_by_category_ms["dp"]
    with pytest.raises(InvalidArgumentError, match="gradient_bytes=3 must be 2 or 4"):
        of(SPLIT, gradient_bytes=3)
    with pytest.raises(InvalidArgumentError, match=r"imbalance=0.5 .*give 1 or more"):
        of(SPLIT, imbalance=0.5)


@pytest.mark.parametrize(
    ("split", "model", "hint"),
    [
        (replace(SPLIT, tp=3), LLAMA, "tp=3 does not divide heads=32; give tp=2 or 4"),
        (Split(tp=8, dp=16, precision="bfloat16"), LLAMA, r"= 128 devices, the cluster has 64; dp=8 needs 64"),
        (
            Split(pp=3, precision="bfloat16"),
            LLAMA,
            r"does not divide 8 layers.* product of 2 or 4, or .* stages=3\+3\+2|",
        ),
        (Split(dp=4, ep=2, precision="bfloat16"), LLAMA, "ep=2: LlamaModel has no experts; give ep=1"),
        (Split(dp=16, ep=16, precision="bfloat16"), MOE, "ep=16 does not divide experts=8; give ep=8"),
    ],
)
def test_a_split_that_does_not_divide_is_refused_with_the_nearest(split: Split, model: Any, hint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=hint):
        of(split, model)


def test_what_has_no_closed_form_is_refused() -> None:
    with pytest.raises(UnimplementedError, match="VitModel"):
        estimate(VitModel(layers=12, hidden=768, heads=12, intermediate=3072), Split(precision="bfloat16"), machine())
    with pytest.raises(UnimplementedError, match="precision='float64' has no closed form"):
        of(replace(SPLIT, precision="float64"))


def test_other_schedules_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_SCHEDULES", dict(schedules._SCHEDULES))
    register_schedule(Schedule("mine", "an order of a test", find_schedule("gpipe").order))
    with pytest.raises(UnimplementedError, match="schedule='mine' has no closed form; use 1f1b, interleaved, gpipe"):
        of(Split(pp=2, microbatches=4, schedule="mine", precision="bfloat16"))


def test_gpus_of_two_models_are_refused() -> None:
    devices = [Device(device_spec(name), index) for index, name in enumerate(("A100-80GB", "H100-SXM"))]
    with pytest.raises(InvalidArgumentError, match="A100-80GB and H100-SXM: a closed form is for GPUs of one model"):
        estimate(LLAMA, Split(dp=2, precision="bfloat16"), Cluster(devices))
