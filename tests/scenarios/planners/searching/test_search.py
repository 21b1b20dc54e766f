"""The search finds the fastest that fits of what it looks at, and says what became of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import Cluster, device_spec, machines_of
from partita.devices.device import Device
from partita.errors import InvalidArgumentError, ResourceExhaustedError, UnimplementedError
from partita.scenarios import GptModel, LlamaModel
from partita.scenarios.planners import estimate, search
from partita.scenarios.planners.machine import OUTSIDE_BYTES
from tests.scenarios.models.families import GPT3, LLAMA3_8B, MIXTRAL

CLUSTER = machines_of("A100-80GB:16")
SMALL = GptModel(24, 2048, 16, positions=2048)
AXES = ["tp", "pp", "cp", "cp_kind", "microbatch", "interleave", "schedule", "sequence_parallel", "recompute", "zero"]


def found(split: Any = None, axes: Any = None, **settings: Any) -> Any:  # Any: as `search` takes and gives
    return search(SMALL, CLUSTER, global_batch=64, split=split, search=axes, **settings)


@pytest.fixture(scope="module")
def whole() -> Any:
    return found(top=100_000)


def test_every_configuration_either_fits_or_counts_for_one_reason(whole: Any) -> None:
    assert len(whole.plans) == whole.fitting == whole.configurations - sum(whole.impossible.values())
    assert whole.fitting <= whole.possible <= whole.configurations


def test_plans_are_in_the_order_of_their_times_and_all_fit(whole: Any) -> None:
    times = [plan.step_ms for plan in whole.plans]
    assert times == sorted(times)
    assert [plan.rank for plan in whole.plans] == list(range(1, len(times) + 1))
    assert len({plan.split for plan in whole.plans}) == len(times)
    limit_gib = (device_spec("A100-80GB").memory_bytes - OUTSIDE_BYTES) / 2**30
    assert all(plan.fits and plan.memory_limit_gib == pytest.approx(limit_gib) for plan in whole.plans)


@pytest.mark.parametrize("row", [0, 1, 5, 50, -1])
def test_a_plan_is_the_estimate_of_its_split(whole: Any, row: int) -> None:
    plan = whole.plans[row]
    alone = estimate(SMALL, plan.split, CLUSTER)
    assert alone.step_ms == pytest.approx(plan.step_ms)
    assert alone.reserved_gib == pytest.approx(plan.reserved_gib)


@given(st.sets(st.sampled_from(AXES), max_size=5))
@settings(max_examples=15)
def test_whoever_searches_fewer_axes_finds_nothing_faster(axes: set[str]) -> None:
    least, more = found(axes=axes, top=1), found(axes=axes | {"tp", "zero"}, top=1)
    assert more.plans[0].step_ms <= least.plans[0].step_ms * (1 + 1e-12)  # products of other rows round otherwise


@given(st.integers(1, 40))
@settings(max_examples=5)
def test_fewer_plans_are_the_first_of_more(top: int) -> None:
    assert found(top=top).plans == found(top=40).plans[:top]


def test_what_is_fixed_is_so_in_all_plans() -> None:
    split = {"tp": 4, "zero": (1, 3), "cp_kind": "heads", "overlap": ("dp",), "precision": "float16"}
    plan = found(split=split, top=100_000)
    assert {(it.tp, it.cp_kind) for it in plan.plans} == {(4, "heads")}
    assert {it.zero for it in plan.plans} == {1, 3}
    assert len({it.dp for it in plan.plans}) > 1
    assert {it.overlap for it in plan.plans} == {("dp",)}
    assert {it.precision for it in plan.plans} == {"float16"}
    assert "fixed: tp=4, zero=1+3, cp_kind=heads" in plan.assumptions


def test_text_and_mapping_say_the_same() -> None:
    text = found(split="tp=8+4,recompute=full,sequence_parallel", axes="tp, microbatch")
    mapping = found(split={"tp": [8, 4], "recompute": "full", "sequence_parallel": True}, axes=["tp", "microbatch"])
    assert text.plans == mapping.plans
    assert text.assumptions == mapping.assumptions


def test_all_gpus_are_used_unless_all_ranks_are_fixed() -> None:
    assert {it.split.devices for it in found(split="dp=2").plans} == {16}
    assert {it.split.devices for it in found(split="dp=2,tp=2,pp=1,cp=1").plans} == {4}


def test_what_rules_leave_out_is_said() -> None:
    text = "\n".join(found().assumptions)
    for part in ("tp over hosts", "1024 tokens of a sequence", "at most 8", "32768", "2 GiB of a device"):
        assert part in text
    assert "not searched: pp=1, cp=1" in "\n".join(found(axes="tp").assumptions)


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ({"axes": "tp,zerro"}, "did you mean 'zero'"),
        ({"axes": ["overlap"]}, "no axis 'overlap'"),
        ({"split": "zro=1"}, "did you mean 'zero'"),
        ({"split": {"zro": 1}}, "did you mean 'zero'"),
        ({"split": "microbatches=4"}, "microbatches follows from global_batch"),
        ({"split": "recompute=fulll"}, "none of none, selective, full, products; did you mean 'full'"),
        ({"split": {"zero": 4}}, "zero=4 is none of 0, 1, 2, 3"),
        ({"split": {"tp": 0}}, "tp=0 is no positive number"),
        ({"split": {"tp": "eight"}}, "tp='eight' is no whole number"),
        ({"split": "precision=bf16"}, "precision='bf16' is none of float32, bfloat16"),
        ({"split": "tp=3,pp=1"}, r"tp \* pp = 3 \* 1 = 3 does not divide the 16 devices .* give a product of 2 or 4"),
        ({"split": "tp=4,pp=8,cp=1,dp=1"}, r"= 32 is more than the 16 devices"),
        ({"split": "tp=3,pp=1,cp=1,dp=1"}, "tp=3 does not divide heads=16; give tp=2 or 4"),
        ({"split": "ep=2"}, "has no experts; give ep=1"),
        ({"split": "pp=1,interleave=2"}, "interleave=2 needs a pipeline"),
        ({"split": "schedule=gpipe,interleave=2"}, "contradict each other"),
        ({"split": "stages=10+15"}, r"stages=\[10, 15\] have 25 layers together, the model has 24"),
        ({"sequence_length": 4096}, "more than the model's positions=2048"),
        ({"top": 0}, "top=0 is no positive number"),
    ],
)
def test_bad_input_is_refused_with_what_works(wanted: Any, hint: str) -> None:
    with pytest.raises(InvalidArgumentError, match=hint):
        found(**wanted)


def test_a_batch_that_no_ranks_divide_is_refused_with_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"global_batch=50: no dp \* microbatch divides it.* give 48 or 56"):
        search(SMALL, CLUSTER, global_batch=50, split="tp=2,pp=1,cp=1")
    with pytest.raises(InvalidArgumentError, match="global_batch=0 is no positive number"):
        search(SMALL, CLUSTER, global_batch=0)


def test_zero_3_over_stages_is_not_there() -> None:
    with pytest.raises(UnimplementedError, match="give zero=1 or 2, or pp=1"):
        found(split="pp=2,dp=2,zero=3")


def test_gpus_of_two_models_are_refused() -> None:
    devices = [Device(device_spec(name), index) for index, name in enumerate(("A100-80GB", "H100-SXM"))]
    with pytest.raises(InvalidArgumentError, match="A100-80GB and H100-SXM: a closed form is for GPUs of one model"):
        search(SMALL, Cluster(devices), global_batch=8)


def test_a_model_that_fits_nowhere_says_the_least_memory_and_how_many_gpus_would_do() -> None:
    with pytest.raises(
        ResourceExhaustedError, match=r"smallest of .* reserves .* GiB, the limit is 78\.0 GiB"
    ) as error:
        search(GPT3, CLUSTER, global_batch=64)
    gpus = int(str(error.value).split("; on ")[1].split(" GPUs")[0])
    assert search(GPT3, machines_of(f"A100-80GB:{gpus}"), global_batch=64, top=1).plans


def test_a_split_that_fits_nowhere_says_what_to_change() -> None:
    with pytest.raises(ResourceExhaustedError, match=r"; with .* which fits") as error:
        search(LLAMA3_8B, CLUSTER, global_batch=64, split="zero=0,pp=1,tp=1,recompute=none")
    change = str(error.value).split("; with ")[1].split(" it would")[0]
    wider = search(LLAMA3_8B, CLUSTER, global_batch=64, split=change, search="tp,pp,microbatch")
    assert wider.plans


def test_a_forward_pass_keeps_nothing_so_less_is_searched() -> None:
    plan = found(trains=False)
    assert {(it.recompute, it.zero) for it in plan.plans} == {("none", 0)}


def test_experts_and_unequal_layers_are_searched() -> None:
    mixtral = search(
        MIXTRAL,
        machines_of("H100-SXM:32"),
        global_batch=256,
        sequence_length=4096,
        split="cp=1,microbatch=1,recompute=none",
        top=100_000,
    )
    assert len({plan.ep for plan in mixtral.plans}) > 1
    uneven = search(LlamaModel(13, 2048, 16, 8192, 32000), CLUSTER, global_batch=32, sequence_length=2048, split="pp=4")
    assert {sum(plan.split.stages_of(13)) for plan in uneven.plans} == {13}
    assert all(plan.split.check(LlamaModel(13, 2048, 16, 8192, 32000), 2048) == () for plan in uneven.plans)
    stages = uneven.plans[0].split.stages_of(13)
    assert max(stages) - min(stages) == 1
