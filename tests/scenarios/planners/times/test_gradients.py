"""What follows the backward pass: exchanges of gradients by the stages of ZeRO, and the optimizer's share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given, settings, strategies as st

from partita.graph.arrays import Floats
from partita.graph.parallel.mesh.mesh import Mesh
from partita.scenarios import GptModel, Split
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.planners.configurations import Configurations
from partita.scenarios.planners.machine import Machine
from partita.scenarios.planners.step import PlannedStep
from partita.scenarios.planners.times.exchanges import AxisGroups, exchange_times
from partita.scenarios.planners.times.gradients import GradientTerms
from partita.scenarios.planners.times.terms import step_terms
from tests.scenarios.planners.times.drawn import (
    GPT,
    LENGTH,
    STEPS,
    all_with,
    few,
    hosts_of,
    machine,
    same,
    steps,
    tables,
)

DENSE = ("gpt", "llama")
sizes = st.sampled_from([1, 2, 4, 16])


def terms_of(step: PlannedStep, rows: list[Split], on: Machine | None = None) -> GradientTerms:
    return step_terms(step, on or machine(), Configurations.of(rows)).gradients


def ns(times: Any) -> Floats:  # Any: ExchangeTimes
    """All of it."""
    return np.asarray(times.inside_ns + times.fixed_ns + times.wire_ns)


def one(kind: str, ranks: int, size: float, on: Machine) -> float:
    """A collective of GPUs of hosts of 8, all of them."""
    inside = min(ranks, 8)
    groups = AxisGroups(np.array([inside]), np.array([ranks // inside]))
    return float(ns(exchange_times(on, kind, groups, np.array([size]), np.array([8])))[0])


@pytest.mark.parametrize("ranks", [2, 8, 32])
@pytest.mark.parametrize("name", DENSE)
def test_stages_of_zero_are_these_collectives(name: str, ranks: int) -> None:
    """Of 4 bytes a gradient and 2 a parameter, of padded weights; 3 gathers once more."""
    model: Any = STEPS[name].model
    weights = model.parameters + (model.padded_vocabulary() - model.vocabulary) * model.hidden
    plain, first, second, third = (
        terms_of(STEPS[name], [Split(dp=ranks, zero=zero, precision="bfloat16")]) for zero in range(4)
    )
    reduced, scattered, gathered = (
        one(kind, ranks, of * weights, machine())
        for kind, of in (("all_reduce", 4), ("reduce_scatter", 4), ("all_gather", 2))
    )
    near = 2e-3  # vocabularies of several GPUs are padded alike here, positions and norms are counted
    assert ns(plain.reduced)[0] == pytest.approx(reduced, rel=near)
    for of, gathers in ((plain, 0), (first, 1), (second, 1), (third, 2)):
        assert ns(of.gathered)[0] == pytest.approx(gathers * gathered, rel=near)
        if gathers:
            assert ns(of.reduced)[0] == pytest.approx(scattered, rel=near)


@few
@given(steps, tables(zero=0), st.sampled_from([1, 2]))
def test_a_sharded_optimizer_updates_its_share(step: PlannedStep, rows: list[Split], zero: int) -> None:
    """1 / (dp cp) of the weights that all ranks have; of routed experts, of which dp cp tp / ep ranks have the same."""
    plain, shared = (terms_of(step, all_with(rows, zero=of)).optimizer_bytes for of in (0, zero))
    whole = np.array([row.dp * row.cp for row in rows])
    routed = np.array([row.dp * row.cp * row.tp // row.ep for row in rows])
    if not isinstance(step.model, MoeModel):
        assert same(shared, plain / whole)
    else:
        assert (shared >= plain / np.maximum(whole, routed) * (1 - 1e-9)).all()
        assert (shared <= plain / np.minimum(whole, routed) * (1 + 1e-9)).all()


@few
@given(steps, tables(), st.sampled_from([1, 2]))
def test_a_group_of_all_is_no_group(step: PlannedStep, rows: list[Split], zero: int) -> None:
    whole, named = (
        terms_of(step, [all_with([row], zero=zero, zero_group=row.dp if named else None)[0] for row in rows])
        for named in (False, True)
    )
    for part in ("reduced", "gathered", "tied"):
        assert same(ns(getattr(whole, part)), ns(getattr(named, part))), part


@pytest.mark.parametrize("name", DENSE)
def test_shards_of_a_host_are_gathered_inside_it(name: str) -> None:
    """Hybrid sharding: parameters never leave the host, and shards of gradients alone do."""
    step, on = STEPS[name], machine()
    [of_all], [of_host] = (
        [terms_of(step, [Split(dp=64, zero=3, zero_group=group, precision="bfloat16")])] for group in (64, 8)
    )
    assert of_host.gathered.wire_ns[0] == 0
    assert of_all.gathered.wire_ns[0] > 0
    assert ns(of_host.gathered) < ns(of_all.gathered)
    parameters = step.model.parameters
    shards = one("all_reduce", 64, 4 * parameters / 8, on) - one("all_reduce", 8, 4 * parameters / 8, on)
    scattered = one("reduce_scatter", 8, 4 * parameters, on)
    assert ns(of_host.reduced)[0] > scattered
    assert ns(of_host.reduced)[0] < scattered + 8 * shards  # rings of a host's GPUs share nothing with 8 ports


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_copies_of_shards_on_one_host_use_its_links(zero: int) -> None:
    """8 GPUs of one host in groups of 4: between copies as fast as any two of them."""
    split = Split(dp=8, zero=zero, zero_group=4, precision="bfloat16")
    of = terms_of(STEPS["llama"], [split], machine("A100-80GB:8"))
    weights = STEPS["llama"].model.parameters
    expected = one("reduce_scatter", 4, 4 * weights, machine()) + one("all_reduce", 2, weights, machine())
    assert of.reduced.wire_ns[0] == 0
    assert ns(of.reduced)[0] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("group", [1, 2, 4, 8, None])
@pytest.mark.parametrize("name", ["moe", "latent"])
def test_experts_that_one_rank_has_are_reduced_nowhere(name: str, group: int | None) -> None:
    """However ZeRO groups ranks: larger experts change nothing."""
    model: Any = STEPS[name].model
    larger = evolve(STEPS[name], model=replace(model, expert_intermediate=2 * model.expert_intermediate))
    split = Split(dp=8, ep=8, zero=1, zero_group=group, precision="bfloat16")
    assert ns(terms_of(larger, [split]).reduced) == ns(terms_of(STEPS[name], [split]).reduced)
    more = Split(dp=16, ep=8, zero=1, precision="bfloat16")
    assert ns(terms_of(larger, [more]).reduced) > ns(terms_of(STEPS[name], [more]).reduced)


@settings(max_examples=15)
@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2]), sizes, sizes)
def test_neighbours_that_share_shards_lie_on_hosts_as_the_mesh_says(tp: int, cp: int, dp: int, group: int) -> None:
    """Inside them a reduce-scatter, between those of the same place an all-reduce of shards."""
    mesh, per_host, group = Mesh(tp=tp, cp=cp, dp=dp), 8, min(group, dp)
    axes = (f"dp:{group}+cp", f"dp/{group}")
    inner, copies = ([*Counter(rank // per_host for rank in mesh.group(of, 0)).values()] for of in axes)
    split = Split(tp=tp, cp=cp, dp=dp, zero=1, zero_group=group, precision="bfloat16")
    step, on = STEPS["llama"], machine("A100-80GB:256")
    weights = terms_of(step, [replace(split, zero=0, zero_group=None)], on).optimizer_bytes[0] / step.optimizer_bytes
    expected = sum(
        ns(exchange_times(on, kind, AxisGroups(*(np.array([n]) for n in (of[0], len(of)))), np.array([size]), used))[0]
        for kind, of, size in (
            ("reduce_scatter", inner, 4 * weights),
            ("all_reduce", copies, 4 * weights / (group * cp)),
        )
        for used in [np.array([min(8, split.devices)])]
    )
    assert ns(terms_of(step, [split], on).reduced)[0] == pytest.approx(expected)


@few
@given(steps, tables())
def test_what_gradients_and_parameters_take_is_of_their_bytes(step: PlannedStep, rows: list[Split]) -> None:
    """Half the bytes take no longer, and parameters as long."""
    half, whole = (terms_of(evolve(step, gradient_bytes=of), rows) for of in (2, 4))
    assert (ns(half.reduced) <= ns(whole.reduced) * 1.02).all()
    assert same(ns(half.gathered), ns(whole.gathered))


@few
@given(steps, tables())
def test_one_rank_and_a_forward_pass_exchange_nothing(step: PlannedStep, rows: list[Split]) -> None:
    single = terms_of(step, all_with(rows, dp=1, cp=1, ep=1, zero=0, zero_group=None, tp=1, sequence_parallel=False))
    assert not ns(single.reduced).any()
    assert not ns(single.gathered).any()
    assert single.optimizer_bytes.all()
    forward = terms_of(evolve(step, trains=False), rows)
    assert not any(ns(getattr(forward, part)).any() for part in ("reduced", "gathered", "tied"))
    assert not forward.optimizer_bytes.any()


def test_a_tied_head_on_another_stage_is_added_up() -> None:
    """Of the table of words of a rank, over two ranks; not where the model has a head of its own, or one stage."""
    split = Split(pp=8, tp=8, precision="bfloat16")
    tied = terms_of(STEPS["gpt"], [split])
    table = GPT.padded_vocabulary(8) * GPT.hidden / 8
    groups = AxisGroups(np.array([1]), np.array([2]))
    said = exchange_times(machine(), "all_reduce", groups, np.array([4 * table]), np.array([8]))
    assert ns(tied.tied) == pytest.approx(ns(said), rel=1e-6)
    own = GptModel(layers=8, hidden=4096, heads=32, positions=LENGTH, tied=False)
    assert not ns(terms_of(evolve(STEPS["gpt"], model=own), [split]).tied).any()
    assert not ns(terms_of(STEPS["gpt"], [Split(tp=8, precision="bfloat16")]).tied).any()


def test_rings_of_a_host_share_its_ports() -> None:
    """tp 1: 8 rings of gradients, tp 8: 8 rings of an eighth each; with 4 ports both take twice as long."""
    for tp in (1, 8):
        split = Split(tp=tp, dp=16 // tp, precision="bfloat16")
        eight, four = (terms_of(STEPS["llama"], [split], hosts_of(2, 8, ports)).reduced.wire_ns[0] for ports in (8, 4))
        assert four == pytest.approx(2 * eight)
