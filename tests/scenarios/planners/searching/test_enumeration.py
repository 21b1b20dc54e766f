"""The configurations of a search space are those that `Split` and its checks allow, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import PartitaError
from partita.scenarios import BertModel, DlrmModel, GptModel, LlamaModel, ModelDescription, MoeModel, Split
from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.configurations import CONTEXT_KINDS, RECOMPUTATIONS, SCHEDULES
from partita.scenarios.planners.searching.axes import AXES, asked
from partita.scenarios.planners.searching.enumeration import enumerated
from partita.scenarios.planners.searching.space import MOST_TOKENS, SearchSpace
from tests.scenarios.models.families import GPT3

GPT = GptModel(6, 96, 12, positions=8192)
LLAMA = LlamaModel(7, 96, 12, 120, 512, kv_heads=4)
WINDOW = LlamaModel(4, 96, 12, 120, 512, kv_heads=6, window=512)
MOE = MoeModel(5, 96, 8, 120, 512, kv_heads=2, experts=6, topk=2, expert_intermediate=48, dense_layers=1)
BERT = BertModel(4, 96, 6, 384)
DLRM = DlrmModel(13, (100,) * 6, 8, (16, 8), (16, 1))
MODELS = [GPT, LLAMA, WINDOW, MOE, BERT, DLRM]
LENGTHS = {BERT: (64, 512), DLRM: (1,)}

COUNT = st.integers(1, 6)
SPLITS = st.fixed_dictionaries(
    {
        "dp": st.integers(1, 12),
        "tp": COUNT,
        "pp": COUNT,
        "cp": COUNT,
        "ep": st.integers(1, 4),
        "cp_kind": st.sampled_from(CONTEXT_KINDS),
        "microbatch": COUNT,
        "interleave": st.integers(1, 3),
        "sequence_parallel": st.booleans(),
        "recompute": st.sampled_from(RECOMPUTATIONS),
        "zero": st.integers(0, 3),
    }
)


def space_of(
    model: ModelDescription, length: int, batch: int, devices: int, per_host: int = 8, **wanted: Any
) -> SearchSpace:
    return SearchSpace(model, length, batch, devices, per_host, asked(wanted.get("search"), wanted.get("split")))


def allowed(model: ModelDescription, length: int, batch: int, devices: int, values: Mapping[str, Any]) -> Split | None:
    """The split of values, layers cut as even as can be, if its checks allow it."""
    stages = values["pp"] * values["interleave"]
    is_uneven = model.layers > stages and model.layers % stages
    try:
        split = Split(
            **{**values, "microbatches": max(batch // (values["dp"] * values["microbatch"]), 1)},
            stages=even_stages(model.layers, stages) if is_uneven else None,
            precision="bfloat16",
        ).of_batch(batch)
        split.check(model, length, devices)
    except PartitaError:
        return None
    return split


@given(st.sampled_from(MODELS), st.data(), SPLITS)
@settings(max_examples=400)
def test_a_configuration_is_possible_where_the_checks_of_its_split_are(
    model: ModelDescription, data: st.DataObject, values: Mapping[str, Any]
) -> None:
    length = data.draw(st.sampled_from(LENGTHS.get(model, (96, 1000, 4096))))
    batch = values["dp"] * values["microbatch"] * data.draw(st.integers(1, 6)) + data.draw(
        st.sampled_from([0, 0, 0, 1])
    )
    found = enumerated(space_of(model, length, batch, 10_000, search=(), split=values))
    split = allowed(model, length, batch, 10_000, values)
    assert found.count == 1
    assert len(found.configurations) == (split is not None), dict(found.impossible)
    if split is not None:
        assert found.configurations.split(0) == split


def normal(split: Split) -> Split:
    """What changes nothing left out: of splits that are the same step, the one that a search has."""
    values = {field: getattr(split, field) for field in Split.__dataclass_fields__}
    if split.cp == 1:
        values["cp_kind"] = "ring"
    if split.tp == 1:
        values["sequence_parallel"] = False
    if split.dp == 1:
        values["zero"] = 0
    if values["zero"] == 0 or split.zero_group == split.dp:
        values["zero_group"] = None
    if split.pp == 1:
        values["schedule"] = "1f1b"
    return Split(**values)


def looped(space: SearchSpace) -> Iterator[Split]:
    """The splits of a space by a nest of loops."""
    model, devices = space.model, space.devices
    microbatches = [it for it in range(1, space.global_batch + 1) if it == 1 or it * (space.rows or 1) <= MOST_TOKENS]
    for tp, cp, pp in product(space.values("tp"), space.values("cp"), range(1, devices + 1)):
        for dp in range(1, devices + 1):
            if tp * cp * pp * dp != devices:
                continue
            for ep, kind, microbatch, interleave, schedule in product(
                range(1, dp + 1), CONTEXT_KINDS, microbatches, space.interleaves(pp), SCHEDULES
            ):
                if (schedule == "interleaved") != (interleave > 1):
                    continue
                for flag, again, zero in product((False, True), RECOMPUTATIONS, range(4)):
                    for group in space.shard_groups(dp, max(space.per_host // (tp * cp), 1)) if zero else (None,):
                        values: dict[str, Any] = {
                            "tp": tp,
                            "cp": cp,
                            "pp": pp,
                            "dp": dp,
                            "ep": ep,
                            "cp_kind": kind,
                            "zero": zero,
                        }
                        values |= {"microbatch": microbatch, "interleave": interleave, "schedule": schedule}
                        values |= {"sequence_parallel": flag, "recompute": again, "zero_group": group}
                        split = allowed(model, space.sequence_length, space.global_batch, devices, values)
                        if split is not None:
                            yield normal(split)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("devices", "batch"), [(4, 6), (6, 6)])
def test_all_configurations_are_those_of_a_nest_of_loops(model: ModelDescription, devices: int, batch: int) -> None:
    space = space_of(model, LENGTHS.get(model, (2048,))[-1], batch, devices, per_host=2)
    found = enumerated(space).configurations
    splits = [found.split(row) for row in range(len(found))]
    assert len(set(splits)) == len(splits)
    assert set(splits) == set(looped(space))


@pytest.mark.parametrize("axis", sorted({*AXES} - {"zero_group"}))  # a search has fewer groups than may be given
def test_a_fixed_axis_has_its_values_alone_and_the_others_stay_free(axis: str) -> None:
    whole = enumerated(space_of(MOE, 2048, 8, 8, 2)).configurations
    several = {getattr(whole.split(row), axis) for row in range(len(whole))}
    assert len(several) > 1
    one = max(several, key=str)
    part = enumerated(space_of(MOE, 2048, 8, 8, 2, split={axis: one})).configurations
    assert 0 < len(part) < len(whole)
    mine = {part.split(row) for row in range(len(part))}
    assert {getattr(split, axis) for split in mine} == {one}
    assert {normal(split) for split in mine} <= {whole.split(row) for row in range(len(whole))}


def test_a_given_zero_group_is_that_of_all_that_shard_where_it_divides_dp() -> None:
    found = enumerated(space_of(MOE, 2048, 8, 8, 2, split={"zero_group": 4, "tp": 1}))
    shards = found.configurations.taken(found.configurations.zero > 0)
    assert set(shards.zero_group) == {4}
    assert not any(shards.dp % 4)
    assert found.impossible["zero_group does not divide dp"]


def test_the_space_of_gpt_3_on_64_gpus_is_of_the_size_that_a_search_is_made_for() -> None:
    found = enumerated(space_of(GPT3, 2048, 512, 64))
    assert (found.count, len(found.configurations)) == (42_540, 31_936)


def test_layers_that_stages_do_not_share_out_are_cut_as_even_as_can_be() -> None:
    found = enumerated(space_of(LLAMA, 4096, 48, 4, search="pp", split="pp=4")).configurations
    assert found.split(0).stages == (2, 2, 2, 1)
