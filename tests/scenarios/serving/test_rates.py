"""The closed form of serving rates: laws of loads, deployments and frameworks, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from partita.devices import parse_cluster
from partita.errors import InvalidArgumentError, NotFoundError
from partita.scenarios import (
    Deployment,
    LatentAttention,
    LlamaModel,
    MoeModel,
    ServingLoad,
    framework_names,
    serving_rates,
)
from partita.scenarios.serving.frameworks import FrameworkNumbers
from partita.scenarios.serving.rates import PassSums, closed_form

CLUSTER = parse_cluster('[[host]]\nmodel = "DGX-H100"\njob = "serving"\ntasks = 2\n')
LLAMA = LlamaModel(32, 4096, 32, 14336, 128256, kv_heads=8)
EXPERTS = MoeModel(
    *(8, 2048, 32, 8192, 32000),
    experts=64,
    topk=4,
    expert_intermediate=1024,
    dense_layers=1,
    shared_intermediate=1024,
    latent=LatentAttention(kv_rank=512, q_rank=1024, nope_size=128, rope_size=64, value_size=128),
)
times = st.floats(1e4, 1e9)


@given(times, times, st.floats(1, 500), st.floats(0, 4), st.integers(1, 8192), st.floats(0, 1))
def test_more_at_a_time_is_never_faster(
    token: float, prompt: float, alive: float, beyond: float, answer: int, burst: float
) -> None:
    """With more requests alive or waiting, neither time falls; one alone pays for nobody else."""
    numbers = FrameworkNumbers(0.8, 1.3, burst, 0.3, 0.5)
    sums = PassSums(token, prompt, alive, alive * (1 + beyond), answer)
    first, further = closed_form(sums, numbers)
    more_first, more = closed_form(sums._replace(alive=alive + 1, asked=sums.asked + 1 + beyond), numbers)
    assert first <= more_first * (1 + 1e-9)
    assert further <= more
    alone_first, alone = closed_form(sums._replace(alive=1, asked=1), numbers)
    assert alone == pytest.approx(0.8 * token)
    assert alone_first == pytest.approx(1.3 * prompt + 0.8 * token)


@settings(max_examples=15)
@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 64), st.sampled_from([128, 1024, 4096]), st.data())
def test_longer_is_slower(tp: int, concurrency: int, prompt: int, data: st.DataObject) -> None:
    """Longer prompts take longer to the first token, and their tokens are slower; parts add up; intervals hold it."""
    framework = data.draw(st.sampled_from(framework_names()))
    of = Deployment(data.draw(st.sampled_from([LLAMA, EXPERTS])), CLUSTER, tp=tp)
    short = serving_rates(of, ServingLoad(concurrency, prompt, 512), framework=framework)
    long = serving_rates(of, ServingLoad(concurrency, 4 * prompt, 512), framework=framework)
    assert short.first_token_ms < long.first_token_ms
    assert short.token_ms < long.token_ms * 1.02
    for said in (short, long):
        assert said.first_token_low_ms < said.first_token_ms < said.first_token_high_ms
        assert said.token_low_ms < said.token_ms < said.token_high_ms
        assert {"projections", "attention", "head"} <= said.token_parts.keys()
        assert ("collectives" in said.token_parts) is (tp > 1)


def test_what_does_not_fit_in_memory_waits() -> None:
    """Beyond the sequences that memory holds, requests wait for the lifetimes of those before them."""
    of = Deployment(LLAMA, CLUSTER)
    most = of.most_sequences(8192 + 512)
    assert 20 < most < 60
    within, beyond = (serving_rates(of, ServingLoad(n, 8192, 1024), framework="vllm") for n in (20, 200))
    assert within.alive == 20
    assert beyond.alive == pytest.approx(most)
    lifetime_ms = 1024 * beyond.token_ms
    assert beyond.first_token_ms > (200 / most - 1) * lifetime_ms > within.first_token_ms


def test_weights_and_cache_are_counted() -> None:
    """Bytes a GPU by hand: Llama's of 8 B parameters in two types and over four GPUs, and a latent row a token."""
    one, four = Deployment(LLAMA, CLUSTER), Deployment(LLAMA, CLUSTER, tp=4, weights="fp8", cache="fp8")
    assert one.weight_bytes == pytest.approx(2 * LLAMA.parameters, rel=1e-3)
    embeddings = 2 * LLAMA.vocabulary * LLAMA.hidden
    assert four.weight_bytes == pytest.approx((LLAMA.parameters - embeddings + 2 * embeddings) / 4, rel=1e-3)
    assert one.cache_bytes(1000) == 2 * 8 * 128 * 2 * 32 * 1000
    assert four.cache_bytes(1000) == 2 * 2 * 128 * 1 * 32 * 1000
    assert Deployment(EXPERTS, CLUSTER, tp=8).cache_bytes(10) == (512 + 64) * 2 * 8 * 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tp": 3}, "tp=3 does not divide heads=32; repeat attention with attention_dp"),
        ({"tp": 8, "attention_dp": 3}, "= 24 GPUs, and the cluster has 16"),
        ({"tp": 0}, "tp=0 is no positive number"),
        ({"weights": "fp3"}, "weights='fp3' must be one of bf16"),
        ({"expert_ep": 7, "tp": 8}, "expert_ep=7 does not divide experts=64"),
        ({"expert_ep": 4, "expert_tp": 4}, "is more than the tp \\* attention_dp = 1 GPUs"),
    ],
)
def test_deployments_that_cannot_be(change: dict[str, object], message: str) -> None:
    """What does not divide or is not known is refused, with what would work."""
    with pytest.raises(InvalidArgumentError, match=message):
        Deployment(EXPERTS, CLUSTER, **change)  # type: ignore[arg-type]  # wrong on purpose


def test_loads_and_names_that_cannot_be() -> None:
    """A load below 1, an unknown framework, weights that do not fit."""
    of = Deployment(LLAMA, CLUSTER)
    with pytest.raises(InvalidArgumentError, match="answer=0 must be 1 or more"):
        serving_rates(of, ServingLoad(1, 128, 0), framework="vllm")
    with pytest.raises(NotFoundError, match="'vlm'; did you mean 'vllm'"):
        serving_rates(of, ServingLoad(1, 128, 8), framework="vlm")
    large = Deployment(LlamaModel(80, 8192, 64, 28672, 128256, kv_heads=8), CLUSTER)
    with pytest.raises(InvalidArgumentError, match=r"GB of weights a GPU do not fit in the 85\.\d GB of H100-SXM"):
        serving_rates(large, ServingLoad(1, 128, 8), framework="vllm")
