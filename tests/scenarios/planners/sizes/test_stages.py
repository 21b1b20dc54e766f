"""The layers of pipeline ranks by kind: nothing is lost, and ranks that are alike are counted once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, strategies as st

from partita.scenarios import GptModel
from partita.scenarios.models.stage_cut import even_stages
from partita.scenarios.planners.sizes.stages import LAYER_KINDS, stage_kinds
from tests.scenarios.planners.times.drawn import GPT, MOE

pipelines = st.tuples(st.integers(1, 8), st.integers(1, 3))


def ranks_of(dense: int, stages: tuple[int, ...], pp: int) -> list[tuple[int, ...]]:
    """Embedding, dense layers, layers with experts and head of each rank, layer by layer."""
    ranks = [dict.fromkeys(LAYER_KINDS, 0) for _ in range(pp)]
    ranks[0]["embedding"] += 1
    ranks[(len(stages) - 1) % pp]["head"] += 1
    layer = 0
    for stage, layers in enumerate(stages):
        for _ in range(layers):
            ranks[stage % pp]["dense" if layer < dense else "experts"] += 1
            layer += 1
    return [tuple(rank.values()) for rank in ranks]


@given(pipelines, st.integers(0, 40), st.integers(0, 64))
def test_kinds_are_the_ranks_counted(pipeline: tuple[int, int], more: int, dense: int) -> None:
    """Also where layers do not divide, and where some of a rank's layers are dense and some have experts."""
    pp, interleave = pipeline
    layers = pp * interleave + more
    dense = min(dense, layers)
    found = stage_kinds(replace(MOE, layers=layers, dense_layers=dense), pp, interleave)
    ranks = ranks_of(dense, even_stages(layers, pp * interleave), pp)
    kinds = list(zip(*(found.layers[kind].tolist() for kind in LAYER_KINDS), strict=True))
    assert dict(zip(kinds, found.ranks.tolist(), strict=True)) == Counter(ranks)
    assert [ranks.index(kind) for kind in kinds] == found.first.tolist()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_layers_of_stages_may_be_given(stages: list[int]) -> None:
    model = GptModel(layers=sum(stages), hidden=64, heads=1)
    found = stage_kinds(model, len(stages), 1, stages)
    layers = [found.layers["dense"][kind] for kind in range(len(found.ranks)) for _ in range(found.ranks[kind])]
    assert sorted(layers) == sorted(stages)
    assert {kind: int((of * found.ranks).sum()) for kind, of in found.layers.items()} == {
        "embedding": 1,
        "dense": sum(stages),
        "experts": 0,
        "head": 1,
    }


def test_one_rank_has_all() -> None:
    found = stage_kinds(GPT, 1, 1)
    assert {kind: of.tolist() for kind, of in found.layers.items()} == {
        "embedding": [1],
        "dense": [8],
        "experts": [0],
        "head": [1],
    }
    assert (found.ranks.tolist(), found.first.tolist()) == ([1], [0])
