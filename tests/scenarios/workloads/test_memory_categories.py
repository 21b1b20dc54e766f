"""What fills the memory of a rank of a language model's training step, by category, as formulas say.

The Llama has N weights, of which n are those of norms, in float32 whatever the precision. In bfloat16 the others have a
float32 master, of which the network sees a copy of 2 bytes. Constants and counters of steps are a few hundred bytes.
"""

from __future__ import annotations

import pytest

from partita.devices import cut, local_cluster
from partita.devices.timing import MemoryPeak, simulate
from partita.scenarios import LlamaModel, Split, build_model

MODEL = LlamaModel(layers=4, hidden=128, heads=4, intermediate=256, vocabulary=512)
N = MODEL.parameters
NORMS = (2 * MODEL.layers + 1) * MODEL.hidden
LENGTH, SMALL = 64, 1000
GPU = "/job:localhost/replica:0/task:0/device:GPU:{}"


def peak(split: Split, *, representatives: bool = False, rank: int = 0, training: bool = True) -> MemoryPeak:
    """The peak of one rank of a step."""
    cluster = local_cluster(f"cpu:1,gpu:{split.devices}")
    step = build_model(
        MODEL, split, cluster, sequence_length=LENGTH, representatives=representatives, training=training
    )
    parts = cut(step.graph, cluster, feeds=list(step.feeds), fetches=step.fetches, targets=step.targets)
    found = simulate(parts, cluster, feeds=dict(step.feeds)).memory(GPU.format(rank))
    assert sum(found.by_category.values()) == found.peak_bytes
    return found


def near(size: int) -> object:
    """A size, but for constants."""
    return pytest.approx(size, abs=SMALL)


@pytest.mark.parametrize("microbatches", [1, 3])
def test_in_float32_a_rank_has_weights_and_two_moments(microbatches: int) -> None:
    """4 N and 8 N; with several micro-batches 4 N of gradients too, which are added up while activations wait."""
    found = peak(Split(precision="float32", microbatch=4, microbatches=microbatches)).by_category
    assert found["parameters"] == near(4 * N)
    assert found["optimizer"] == near(8 * N)
    if microbatches > 1:
        assert found["gradients"] == near(4 * N)


@pytest.mark.parametrize(("tp", "dp"), [(1, 1), (4, 1), (2, 2)])
def test_in_bfloat16_masters_are_of_the_optimizer(tp: int, dp: int) -> None:
    """2 bytes of values, 4 of gradients, 12 of master and moments; tp shares out all but norms, dp nothing.

    In the last backward pass, where the peak is, nobody reads the table of the embedding any more.
    """
    split = Split(tp=tp, dp=dp, precision="bfloat16", microbatch=8, microbatches=2)
    found = peak(split).by_category
    cast = (N - NORMS) // tp
    assert found["parameters"] == near(2 * (cast - MODEL.vocabulary * MODEL.hidden // tp) + 4 * NORMS)
    assert found["optimizer"] == near(12 * cast + 8 * NORMS)
    assert found["gradients"] == near(4 * (cast + NORMS))


def test_zero_shares_out_the_optimizer() -> None:
    """With stage 1 the whole weight stays in float32 beside a shard of 12 bytes an element over 4 ranks."""
    found = peak(Split(dp=4, zero=1, precision="bfloat16", microbatch=8, microbatches=2)).by_category
    assert found["optimizer"] == near(4 * (N - NORMS) + 12 * N // 4)
    assert found["gradients"] == near(4 * N)


def test_with_stage_3_a_rank_has_shards_of_all() -> None:
    """Weights that are gathered for a while are temporaries."""
    found = peak(Split(dp=4, zero=3, precision="bfloat16", microbatch=8, microbatches=2)).by_category
    assert found["parameters"] == near(4 * NORMS // 4)
    assert found["optimizer"] == near((12 * (N - NORMS) + 8 * NORMS) // 4)
    assert found["temporaries"] > 2 * (N - NORMS) - SMALL


def test_recomputation_leaves_the_inputs_of_layers() -> None:
    """2 bytes of each element of them, and what one layer keeps, computed again."""
    rows = 64 * LENGTH * MODEL.hidden * 2
    kept = {
        way: peak(Split(precision="bfloat16", microbatch=64, recompute=way)).by_category["activations"]
        for way in ("none", "full")
    }
    assert MODEL.layers * rows <= kept["full"] <= MODEL.layers * rows + kept["none"] / MODEL.layers
    assert kept["none"] > 10 * MODEL.layers * rows


@pytest.mark.parametrize("rank", [0, 4])
def test_representatives_have_the_categories_of_ranks(rank: int) -> None:
    """Of both stages of a pipeline; but for inputs, which representatives have on their hosts."""
    split = Split(pp=2, tp=2, dp=2, precision="bfloat16", microbatch=4, microbatches=4)
    whole, once = (peak(split, rank=rank, representatives=way).by_category for way in (False, True))
    assert whole == once


def test_stages_of_a_pipeline_keep_activations_of_as_many_micro_batches_as_are_under_way() -> None:
    """The first of two stages those of two, the last of one."""
    split = Split(pp=2, precision="bfloat16", microbatch=16, microbatches=6)
    first, last = (peak(split, rank=rank).by_category["activations"] for rank in (0, 1))
    assert first > 1.7 * last


def test_inference_has_parameters_in_the_type_of_products() -> None:
    """2 bytes, of norms 4, and no gradients, optimizer or activations."""
    found = peak(Split(precision="bfloat16", microbatch=8), training=False).by_category
    assert found["parameters"] == near(2 * N + 2 * NORMS)
    assert found["gradients"] == found["optimizer"] == found["activations"] == 0
