"""Layers, stages and micro-batches become the time of a step: pipelines, recomputation, the forward pass."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from partita.graph.arrays import Floats
from partita.scenarios import Split
from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.numbers import PRIORS, PlanNumbers, training_numbers
from partita.scenarios.planners.sizes.stages import LAYER_KINDS
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.assembly import AssembledTimes, assembled
from partita.scenarios.planners.times.terms import StageTerms, StepTerms, step_terms
from tests.scenarios.planners.times.drawn import (
    GPT,
    LENGTH,
    MOE,
    STEPS,
    all_with,
    few,
    machine,
    same,
    steps,
    tables,
    times_of,
)

NUMBERS = training_numbers().of("A100-80GB")
numbers = st.builds(
    PlanNumbers, **{name: st.floats(it.value / 2, 2 * it.value).map(float) for name, it in PRIORS.items()}
)


def with_ranks(terms: StepTerms, *ranks: dict[str, int]) -> StepTerms:
    """The terms of one row, for a pipeline of these ranks, each with its layers by kind."""
    columns = {kind: np.array([[rank.get(kind, 0) for rank in ranks]]) for kind in LAYER_KINDS}
    stages = StageTerms(columns, np.ones((1, len(ranks)), dtype=np.int64))
    return terms._replace(stages=stages, runs=terms.runs._replace(pp=np.array([len(ranks)])))


def stages_ns(of: AssembledTimes, by: PlanNumbers) -> Floats:
    """A step without what is once a step: its micro-batches on all stages."""
    once = sum((of.by_category[name] for name in ("dp", "pp", "optimizer")), np.zeros(len(of.step_ns)))
    return np.asarray(of.step_ns - once - by.step_ns)


@cache
def of_split(name: str, split: Split) -> StepTerms:
    """The terms of one row."""
    return step_terms(STEPS[name], machine(), Configurations.of([split]))


@settings(max_examples=20)
@given(st.integers(1, 16), st.integers(1, 4), st.integers(1, 4), st.integers(1, 8), numbers)
def test_equal_stages_take_as_long_as_narayanan_says(m: int, pp: int, v: int, layers: int, by: PlanNumbers) -> None:
    """(m + (pp - 1) / v) * stage; the bubble is its second part."""
    terms = of_split("llama", Split(tp=2, precision="bfloat16"))
    stage = float(stages_ns(assembled(with_ranks(terms, {"dense": layers}), by), by)[0])
    runs = terms.runs._replace(microbatches=np.array([m]), interleave=np.array([v]))
    whole = assembled(with_ranks(terms._replace(runs=runs), *[{"dense": layers}] * pp), by)
    assert stages_ns(whole, by)[0] == pytest.approx((m + (pp - 1) / v) * stage)
    assert whole.by_category["bubble"][0] == pytest.approx((pp - 1) / v * stage)


@settings(max_examples=20)
@given(
    st.sampled_from(["gpt", "moe"]),
    st.integers(1, 4),
    st.sampled_from([(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (2, 4)]),
    numbers,
)
def test_unequal_stages_wait_for_the_slowest(name: str, m: int, pipeline: tuple[int, int], by: PlanNumbers) -> None:
    """(m - 1) * slowest + all / v + (1 - 1 / v) * slowest, of layers one by one, embedding and head too."""
    pp, v = pipeline
    split = Split(tp=2, pp=pp, interleave=v, microbatches=m * pp, precision="bfloat16")
    terms = of_split(name, split)
    alone = terms._replace(runs=terms.runs._replace(microbatches=np.array([1]), interleave=np.array([1])))
    host = by.microbatch_ns
    of_layer = {
        kind: float(stages_ns(assembled(with_ranks(alone, {kind: 1}), by), by)[0]) - host for kind in terms.layers
    }
    model: Any = STEPS[name].model
    dense = model.dense_layers if model == MOE else model.layers
    ranks, layer = [host] * pp, 0
    ranks[0] += of_layer["embedding"]
    ranks[-1] += of_layer["head"]
    for stage, layers in enumerate(even_stages(model.layers, pp * v)):
        for _ in range(layers):
            ranks[stage % pp] += of_layer["dense" if layer < dense else "experts"]
            layer += 1
    slowest, count = max(ranks), m * pp
    expected = (count - 1) * slowest + sum(ranks) / v + (1 - 1 / v) * slowest
    assert stages_ns(assembled(terms, by), by)[0] == pytest.approx(expected)


@few
@given(steps, tables(pp=1), st.integers(2, 9))
def test_micro_batches_repeat_what_one_takes(step: PlannedStep, rows: list[Split], times: int) -> None:
    """Without a pipeline all but gradients, the optimizer and the step's own time grow as their number."""
    more = [row.of_batch(times * row.global_batch) for row in rows]
    once, often = (times_of(step, machine(), *of).by_category for of in (rows, more))
    for name in once:
        own = NUMBERS.step_ns if name == "launches" else 0
        factor = 1 if name in ("dp", "pp", "optimizer") else times
        assert same(often[name] - own, factor * (once[name] - own)), name


@few
@given(steps, tables(schedule="1f1b", interleave=1))
def test_gpipe_keeps_stages_as_busy_as_1f1b(step: PlannedStep, rows: list[Split]) -> None:
    """Its transfers alone differ: none waits for one the other way."""
    plain, gpipe = (
        times_of(step, machine(), *all_with(rows, schedule=schedule)).by_category for schedule in ("1f1b", "gpipe")
    )
    assert (gpipe["pp"] <= plain["pp"]).all()
    assert all(same(plain[name], gpipe[name]) for name in plain if name != "pp")


@few
@given(steps, tables(pp=4, interleave=1, schedule="1f1b"))
def test_interleaving_shortens_the_bubble_and_sends_more(step: PlannedStep, rows: list[Split]) -> None:
    plain, more = (times_of(step, machine(), *all_with(rows, interleave=v, schedule="")).by_category for v in (1, 2))
    assert (more["bubble"] < plain["bubble"]).all()
    assert (more["pp"] > plain["pp"]).all()


@few
@given(steps, tables())
def test_what_is_computed_again_takes_time(step: PlannedStep, rows: list[Split]) -> None:
    none, selective, full, products = (
        times_of(step, machine(), *all_with(rows, recompute=kind)).step_ns
        for kind in ("none", "selective", "full", "products")
    )
    assert (none < selective).all()
    assert (selective < full).all()
    assert (none < products).all()
    assert (products < full).all()


@few
@given(steps, tables(recompute="full"))
def test_whole_layers_computed_again_take_a_forward_pass_more(step: PlannedStep, rows: list[Split]) -> None:
    """Attention, all of which is before the end of a layer, once more; of the rest up to as much."""
    again, none, forward = (
        times_of(evolve(step, trains=trains), machine(), *all_with(rows, recompute=kind, pp=1, interleave=1))
        for kind, trains in (("full", True), ("none", True), ("none", False))
    )
    extra = {name: again.by_category[name] - none.by_category[name] for name in none.by_category}
    assert same(extra["attention"], forward.by_category["attention"])
    for name in ("products", "memory_bound", "tp"):
        assert (extra[name] <= forward.by_category[name] * (1 + 1e-9)).all(), name
        assert (extra[name] >= 0.4 * forward.by_category[name]).all(), name


@few
@given(steps, tables(recompute="none", zero=0))
def test_a_forward_pass_is_about_a_third_of_a_step(step: PlannedStep, rows: list[Split]) -> None:
    """Of its products; nothing follows it."""
    whole, forward = (times_of(evolve(step, trains=trains), machine(), *rows).by_category for trains in (True, False))
    share = forward["products"] / whole["products"]
    assert ((share > 0.25) & (share < 0.4)).all()
    assert not forward["dp"].any()
    assert not forward["optimizer"].any()
    assert all((forward[name] <= whole[name]).all() for name in whole)


@few
@given(numbers, tables())
def test_slower_numbers_make_no_step_faster(by: PlanNumbers, rows: list[Split]) -> None:
    """Of each number by itself; shares of rates are the other way round."""
    terms = step_terms(STEPS["moe"], machine(), Configurations.of(rows))
    before = assembled(terms, by).step_ns
    for name in PRIORS:
        factor = 0.9 if name in ("memory", "network", "optimizer") else 1.1
        after = assembled(terms, by._replace(**{name: factor * getattr(by, name)})).step_ns
        assert (after >= before * (1 - 1e-12)).all(), name


def test_launches_show_where_kernels_are_short() -> None:
    """A narrow model waits for its launches; a wide one hardly does."""
    narrow, wide = (
        times_of(PlannedStep(model, LENGTH), machine(), Split(microbatch=batch, precision="bfloat16"))
        for model, batch in ((replace(GPT, hidden=512, intermediate=2048), 1), (GPT, 4))
    )
    share = [float(times.by_category["launches"][0] / times.step_ns[0]) for times in (narrow, wide)]
    assert share[0] > 0.2
    assert share[1] < 0.1
