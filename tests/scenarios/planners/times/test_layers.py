"""What a rank computes in a layer: the operations of the model's weights, shared out over ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from partita.graph.arrays import Floats
from partita.scenarios import Split
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.kernels import BACKWARD, CORE, FORWARD, TAIL, LayerWork
from partita.scenarios.planners.times.layers import KEYS, layer_works
from tests.scenarios.planners.times.drawn import (
    GPT,
    LATENT,
    LENGTH,
    LLAMA,
    MOE,
    STEPS,
    all_with,
    few,
    machine,
    parts_of,
    same,
    splits,
    steps,
    tables,
    times_of,
)

wide = settings(max_examples=30)


def works_of(step: PlannedStep, rows: list[Split]) -> dict[str, LayerWork]:
    of = Configurations.of(rows)
    return layer_works(step, {name: of.columns[name] for name in KEYS}, of.precision)


def operations(work: LayerWork, phase: str, category: str = "products") -> Floats:
    """Of products in a phase, a multiplication and an addition as two; of experts too."""
    total = np.zeros(work.rows)
    for run in work.products:
        if (run.phase, run.category) == (phase, category):
            total += 2.0 * run.m * run.n * run.k * run.batch
    for each in work.grouped_products if category == "products" else []:
        if each.phase == phase:
            total += 2.0 * np.prod(
                [each.columns[name].astype(np.float64) for name in ("groups", "m", "n", "k")], axis=0
            )
    return total


def exchanged(work: LayerWork, axis: str, kind: str, phase: str) -> Floats:
    """Bytes that a kind of collective has in a phase."""
    of = [it for it in work.exchanges if (it.axis, it.kind, it.phase) == (axis, kind, phase)]
    return np.asarray(sum((it.size_bytes * it.runs for it in of), np.zeros(work.rows)))


def column(rows: list[Split], name: str) -> Floats:
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)


@wide
@given(st.sampled_from(["gpt", "llama", "megatron"]), tables(has_experts=False))
def test_products_of_a_dense_layer_are_those_of_its_weights(name: str, rows: list[Split]) -> None:
    """2 a weight and token, forward; a tp rank has its share of the weights, a cp rank of the tokens."""
    model: Any = STEPS[name].model
    works, h, i = works_of(STEPS[name], rows), model.hidden, model.intermediate
    weights = 4 * h * h + 2 * h * i if name != "llama" else h * (2 * h + 2 * 8 * 128) + 3 * h * i
    tokens = column(rows, "microbatch") * LENGTH / column(rows, "cp")
    for kind, of_kind in (("dense", weights), ("head", works["head"].products[0].n * column(rows, "tp") * h)):
        forward = operations(works[kind], FORWARD)
        assert same(forward, 2 * tokens * of_kind / column(rows, "tp")), kind
        assert same(operations(works[kind], BACKWARD), 2 * forward), kind


@pytest.mark.parametrize("model", [LLAMA, MOE, LATENT], ids=["llama", "moe", "latent"])
def test_products_are_6_operations_a_parameter_and_token(model: Any) -> None:
    """Of those that a token meets, without the embedding, whose rows are looked up, and norms."""
    works = works_of(PlannedStep(model, LENGTH), [Split(precision="bfloat16")])
    dense = getattr(model, "dense_layers", model.layers)
    layers = {"dense": dense, "experts": model.layers - dense, "head": 1}
    total = sum(
        operations(works[kind], phase)[0] * count
        for kind, count in layers.items()
        if count
        for phase in (FORWARD, BACKWARD)
    )
    met = model.active_parameters - model.vocabulary * model.hidden
    assert total == pytest.approx(6 * met * LENGTH, rel=2e-3)


@wide
@given(st.sampled_from(["moe", "latent"]), tables(), st.floats(1, 3))
def test_experts_get_the_rows_of_their_tokens(name: str, rows: list[Split], imbalance: float) -> None:
    """topk rows a token, of tokens that tp parts; the busiest of several ep ranks has `imbalance` times as many."""
    model: Any = STEPS[name].model
    works = works_of(evolve(STEPS[name], imbalance=imbalance), rows)["experts"]
    sent = column(rows, "microbatch") * LENGTH / column(rows, "cp") / column(rows, "tp") * model.topk
    received = sent * np.where(column(rows, "ep") > 1, imbalance, 1)
    runs = [run for run in works.grouped_products if run.phase == FORWARD]
    for run in runs:
        assert np.array_equal(run.columns["groups"], model.experts / column(rows, "ep"))
        got = run.columns["m"] * run.columns["groups"]
        assert (got >= received * (1 - 1e-12)).all()
        assert (got < received + run.columns["groups"]).all()
    assert [(int(run.columns["n"][0]), int(run.columns["k"][0])) for run in runs] == [
        (2 * model.expert_intermediate, model.hidden),
        (model.hidden, model.expert_intermediate),
    ]
    both_ways = 2 * received * model.hidden * 2 * (column(rows, "ep") > 1)
    for phase in (FORWARD, BACKWARD):
        assert same(exchanged(works, "ep", "all_to_all", phase), both_ways)


@wide
@given(st.sampled_from(["llama", "megatron", "latent"]), tables(has_experts=False))
def test_attention_is_shared_out_over_tp_and_cp(name: str, rows: list[Split]) -> None:
    """By heads or by blocks of a ring: a rank has 1 / (tp cp) of the pairs of positions of all heads."""
    work = works_of(STEPS[name], rows)["dense"]
    share = column(rows, "microbatch") * 32 * float(LENGTH) ** 2 / column(rows, "tp") / column(rows, "cp")
    if STEPS[name].fused_attention:
        for run in work.attentions:
            assert same(run.runs * run.columns["batch"] * run.columns["heads"] * run.columns["square"], share)
        assert not operations(work, FORWARD, "attention").any()
    else:
        assert not work.attentions
        assert same(operations(work, FORWARD, "attention"), 2 * share * 2 * 128)
        assert same(operations(work, BACKWARD, "attention"), 2 * operations(work, FORWARD, "attention"))


@given(st.integers(1, 2 * LENGTH))
def test_a_window_leaves_the_pairs_that_a_query_sees(window: int) -> None:
    """Twice their number, but for the diagonal."""
    step = PlannedStep(replace(LLAMA, window=window), LENGTH)
    [forward, _] = works_of(step, [Split(precision="bfloat16")])["dense"].attentions
    seen = np.minimum(np.arange(1, LENGTH + 1), window)
    assert forward.columns["square"][0] == pytest.approx(2 * seen.sum(), abs=LENGTH)


@wide
@given(steps, tables())
def test_parts_of_a_forward_pass_are_no_more_than_it(step: PlannedStep, rows: list[Split]) -> None:
    """The core of attention and the end of a layer together, in all that is counted."""
    for kind, work in works_of(step, rows).items():
        for counted in (work.bytes, work.streams, work.kernels):
            assert (counted[CORE] + counted[TAIL] <= counted[FORWARD] + 1e-6).all(), kind
        again = [run for run in work.products if run.also]
        assert {run.phase for run in again} <= {FORWARD, BACKWARD}
        assert {run.also for run in again} <= {CORE, TAIL}
        for axis in ("tp", "cp", "ep"):
            for exchange in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"):
                parts = exchanged(work, axis, exchange, CORE) + exchanged(work, axis, exchange, TAIL)
                assert (parts <= exchanged(work, axis, exchange, FORWARD)).all(), (kind, axis)


@wide
@given(st.sampled_from(["gpt", "megatron", "llama"]), splits(tp=8, has_experts=False))
def test_sequence_parallelism_parts_rows_and_exchanges_as_much(name: str, split: Split) -> None:
    """A reduce-scatter and an all-gather in place of an all-reduce; norms and residuals on 1 / tp of the rows."""
    whole, parted = (works_of(STEPS[name], all_with([split], sequence_parallel=of))["dense"] for of in (False, True))
    for phase in (FORWARD, BACKWARD):
        assert (parted.bytes[phase] < whole.bytes[phase]).all()
        assert operations(parted, phase) == operations(whole, phase)
        assert not exchanged(parted, "tp", "all_reduce", phase)
        reduced = exchanged(whole, "tp", "all_reduce", phase)
        assert exchanged(parted, "tp", "reduce_scatter", phase) == reduced
        gathers = 2 if phase == BACKWARD and STEPS[name].gathers_again else 1
        assert exchanged(parted, "tp", "all_gather", phase) == gathers * reduced
    size = split.microbatch * LENGTH / split.cp * 4096 * 2
    assert exchanged(whole, "tp", "all_reduce", FORWARD) == 2 * size


@wide
@given(steps, tables(tp=1))
def test_tensor_parallelism_makes_no_layer_longer(step: PlannedStep, rows: list[Split]) -> None:
    """Of products and of what streams."""
    for kind, alone in works_of(step, rows).items():
        parted = works_of(step, all_with(rows, tp=2))[kind]
        for phase in (FORWARD, BACKWARD):
            assert (operations(parted, phase) <= operations(alone, phase) * (1 + 1e-3)).all(), kind
            if kind != "embedding":  # whose rows of other ranks are masked
                assert (parted.bytes[phase] <= alone.bytes[phase] * (1 + 1e-3)).all(), kind


@pytest.mark.parametrize(
    ("fields", "kind"),
    [({"dropout": True}, "dense"), ({"fused_attention": False}, "dense"), ({"fused_loss": False}, "head")],
)
def test_what_is_not_fused_moves_more(fields: dict[str, Any], kind: str) -> None:
    split = [Split(precision="bfloat16")]
    plain, more = (works_of(evolve(STEPS["gpt"], **of), split)[kind] for of in ({}, fields))
    for phase in (FORWARD, BACKWARD):
        assert more.bytes[phase] > plain.bytes[phase]


def test_float32_moves_twice_the_bytes() -> None:
    narrow, broad = (works_of(STEPS["gpt"], [Split(precision=of)])["dense"] for of in ("bfloat16", "float32"))
    for phase in (FORWARD, BACKWARD):
        assert broad.bytes[phase] == 2 * narrow.bytes[phase]


def test_kinds_of_layers_are_those_of_the_model() -> None:
    split = [Split(precision="bfloat16")]
    kinds = {name: set(works_of(PlannedStep(model, LENGTH), split)) for name, model in MODELS.items()}
    assert kinds == {
        "dense": {"embedding", "dense", "head"},
        "both": {"embedding", "dense", "experts", "head"},
        "experts": {"embedding", "experts", "head"},
    }


MODELS: dict[str, Any] = {"dense": GPT, "both": MOE, "experts": replace(MOE, dense_layers=0)}


@few
@given(st.sampled_from(["gpt", "llama", "moe"]), tables(), st.floats(1.1, 4))
def test_imbalance_slows_experts_alone(name: str, rows: list[Split], imbalance: float) -> None:
    """Where they are shared out."""
    even, uneven = (parts_of(times_of(evolve(STEPS[name], imbalance=of), machine(), *rows)) for of in (1.0, imbalance))
    shared = column(rows, "ep") > 1 if name == "moe" else np.zeros(len(rows), np.bool_)
    for part in ("products", "ep"):
        assert ((uneven[part] > even[part]) == shared).all(), part
    for part in ("attention", "tp", "pp", "optimizer"):
        assert same(uneven[part], even[part]), part


@few
@given(tables(cp_kind="heads", has_experts=False), st.integers(1, 2 * LENGTH))
def test_a_window_of_attention_makes_no_step_slower(rows: list[Split], window: int) -> None:
    """By the fit of attention of a B200, the one that there is."""
    narrow, whole = (
        times_of(PlannedStep(replace(LLAMA, window=tokens), LENGTH), machine("B200-SXM:64"), *rows)
        for tokens in (window, 0)
    )
    assert (narrow.by_category["attention"] <= whole.by_category["attention"] * (1 + 1e-12)).all()
    assert (narrow.step_ns <= whole.step_ns * (1 + 1e-12)).all()
    if window >= LENGTH:
        assert same(narrow.step_ns, whole.step_ns)
