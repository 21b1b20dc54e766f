"""`search_inference`: what fits, in order, with prices and errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import Cluster, local_cluster
from partita.errors import InvalidArgumentError, ResourceExhaustedError
from partita.scenarios import BertModel, GptModel, LlamaModel
from partita.scenarios.planners.inference.passages import ReplicaLayout
from partita.scenarios.planners.inference.plan import InferencePlan
from partita.scenarios.planners.inference.rank import Phase
from partita.scenarios.planners.inference.search import search_inference
from tests.scenarios.planners.inference.served_models import MODELS, dgx, llama_8b, passages_of, simulated

H100 = dgx()
ONE = local_cluster("gpu:1", gpu="H100-SXM")
LLAMA_70B = LlamaModel(layers=80, hidden=8192, heads=64, kv_heads=8, intermediate=28672, vocabulary=128256)


def plan_of(
    model: Any = None, cluster: Cluster = H100, **given_settings: Any
) -> InferencePlan:  # Any: as callers give them
    return search_inference(model or llama_8b(), cluster, **{"prompt": 2048, "output": 256, **given_settings})


@settings(max_examples=6)
@given(
    name=st.sampled_from(["llama", "mixtral", "deepseek"]),
    prompt=st.sampled_from((256, 1024)),
    output=st.integers(1, 500),
    tpot_ms=st.sampled_from((None, 3.0, 30.0)),
)
def test_plans_fit_are_fast_and_ordered(name: str, prompt: int, output: int, tpot_ms: float | None) -> None:
    """Plans fit, take at most `tpot_ms`, come by tokens per second, and all rows are plans or counted by reason."""
    found = plan_of(MODELS[name](4), prompt=prompt, output=output, tpot_ms=tpot_ms, top=10**6, batches=(1, 64))
    assert len(found.plans) + sum(found.impossible.values()) == found.configurations
    assert [plan.rank for plan in found.plans] == [*range(1, len(found.plans) + 1)]
    rates = [plan.tokens_per_s for plan in found.plans]
    assert rates == sorted(rates, reverse=True)
    for plan in found.plans:
        assert plan.allocated_gib <= plan.memory_limit_gib
        assert plan.batch <= plan.most_batch
        assert plan.prefill_ms_low <= plan.prefill_ms <= plan.prefill_ms_high
        assert plan.decode_ms_low <= plan.decode_ms <= plan.decode_ms_high
        assert tpot_ms is None or plan.decode_ms <= tpot_ms
        assert plan.replicas * plan.tp * plan.pp == 8


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    """`most_batch` is the border of memory."""
    most = plan_of(cluster=ONE, batches=[1]).plans[0].most_batch
    assert plan_of(cluster=ONE, batches=[most]).plans[0].batch == most
    with pytest.raises(ResourceExhaustedError, match=f"batch={most} fits, with tp=1,pp=1,ep=1"):
        plan_of(cluster=ONE, batches=[most + 1])
    partly = plan_of(cluster=ONE, batches=[1, most + 1])
    assert partly.impossible == {"does not fit in memory": 1}
    assert f"batch={most + 1} fits nowhere: the largest that does is {most}, with tp=1,pp=1,ep=1" in partly.assumptions


def test_a_plan_is_a_simulated_prompt_and_token() -> None:
    """prefill_ms is a prompt alone, decode_ms a token at the mean context, tokens/s what both leave."""
    plan = plan_of(split={"tp": 2, "pp": 1}, batches=[8]).plans[0]
    layout = ReplicaLayout(2, 1, 1)
    prompt = simulated(llama_8b(), H100, layout, Phase("prefill", 1, 2048, 2304)).makespan_ns / 1e6
    token = simulated(llama_8b(), H100, layout, Phase("decode", 8, 1, 2176)).makespan_ns / 1e6
    assert plan.prefill_ms == pytest.approx(prompt, rel=0.02)
    assert plan.decode_ms == pytest.approx(token, rel=0.02)
    cycle_s = (256 * plan.decode_ms + 8 * plan.prefill_ms) / 1e3
    assert plan.tokens_per_s == pytest.approx(4 * 8 * 256 / cycle_s)


def test_batches_under_way_in_a_pipeline() -> None:
    """With pp stages a token comes after pp times the slowest at least, and there are keys of pp batches."""
    one = plan_of(split={"tp": 1, "pp": 1}, batches=[8]).plans[0]
    four = plan_of(split={"tp": 1, "pp": 4}, batches=[8]).plans[0]
    closed, layout, phase = passages_of(llama_8b(), H100), ReplicaLayout(1, 4, 1), Phase("decode", 8, 1, 2176)
    closed.learn([(layout, phase)])
    passage = closed.passage(layout, phase)
    assert four.decode_ms * 1e6 == max(4 * passage.slowest.time_ns, passage.total.time_ns)
    assert four.kv_cache_gib == pytest.approx(one.kv_cache_gib)
    assert four.replicas == 2


def test_dollars_follow_from_price_and_rate() -> None:
    """A million tokens cost an hour's price for the hours that they take; without a price nobody says."""
    priced, free = plan_of(usd_per_hour=36.0, batches=[8]).plans[0], plan_of(batches=[8]).plans[0]
    assert priced.usd_per_million_tokens == pytest.approx(36 / 3600 * 1e6 / priced.tokens_per_s)
    assert free.usd_per_million_tokens is None
    assert free.record["usd_per_million_tokens"] is None


def test_a_model_that_fits_nowhere_says_the_smallest() -> None:
    """The error has the least memory that a layout needs, and what would make it fit."""
    with pytest.raises(
        ResourceExhaustedError, match=r"the smallest, tp=1,pp=1,ep=1 with batch=1, takes 13\d\.\d GiB"
    ) as caught:
        plan_of(LLAMA_70B, ONE)
    assert "give 2 times as many GPUs to a replica" in str(caught.value)


@pytest.mark.parametrize(
    ("model", "wrong", "text"),
    [
        (BertModel(layers=2, hidden=64, heads=2, intermediate=64), {}, "BertModel does not go on token by token"),
        (GptModel(layers=2, hidden=64, heads=2), {"prompt": 1000}, "give an output of 24 or less"),
        (None, {"prompt": 1}, "prompt=1 is no number of tokens; give 2 or more"),
        (None, {"output": 0}, "output=0 is no number of tokens; give 1 or more"),
        (None, {"tpot_ms": 0.0}, "tpot_ms=0.0 must be above 0"),
        (None, {"tpot_ms": 0.5}, "no configuration is as fast; tp=8,pp=1,ep=1 with batch=1 takes"),
        (None, {"top": 0}, "top=0 is no positive number"),
        (None, {"precision": "int4"}, "precision='int4' is none of"),
    ],
)
def test_bad_input(model: Any, wrong: dict[str, Any], text: str) -> None:  # Any: as callers give them
    """What cannot be is refused, with what to do."""
    with pytest.raises(InvalidArgumentError) as caught:
        plan_of(model, **wrong)
    assert text in str(caught.value)
