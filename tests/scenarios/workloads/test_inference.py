"""A prefill and decoded tokens have the logits of the forward pass over whole sequences, on any split."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from partita.actors import open_session
from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.rope import Rope
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.model_building import build_model
from partita.scenarios.workloads.model_step import ModelStep

BATCH, BEGINNING, LENGTH, CONTEXT, VOCABULARY = 4, 4, 7, 8, 11
SIZES = (2, 8, 4, 12, VOCABULARY)
MODELS: dict[str, ModelDescription] = {
    "gpt": GptModel(2, 8, 4, vocabulary=VOCABULARY, positions=CONTEXT, pad_vocabulary=1),
    "llama": LlamaModel(*SIZES, kv_heads=2, qkv_bias=True, rope=Rope(theta=100.0), pad_vocabulary=1),
    "window": LlamaModel(*SIZES, kv_heads=1, window=3, tied=True, pad_vocabulary=4),
    "moe": MoeModel(*SIZES, kv_heads=2, experts=4, topk=2, expert_intermediate=6, pad_vocabulary=1),
    "latent": MoeModel(
        *SIZES,
        experts=4,
        topk=2,
        expert_intermediate=6,
        shared_intermediate=4,
        dense_layers=1,
        pad_vocabulary=1,
        latent=LatentAttention(kv_rank=6, q_rank=5, nope_size=4, rope_size=2, value_size=3),
    ),
}
SPLITS: list[dict[str, Any]] = [  # Any: fields of a split
    {"microbatch": 4},
    {"microbatch": 4, "tp": 2, "sequence_parallel": True},
    {"microbatch": 4, "pp": 2},
    {"microbatch": 2, "dp": 2, "tp": 2, "pp": 2},
]


def tokens() -> Array:
    return np.random.default_rng(3).integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32)


def step(name: str, *, precision: str = "float64", **given: Any) -> ModelStep:  # Any: fields of a split, and the rest
    """A step without training, on as many CPUs as its split has ranks."""
    of_step = {key: given.pop(key) for key in ("inference", "context", "sequence_length", "fused") if key in given}
    split = Split(precision=precision, **given)  # type: ignore[arg-type]  # a precision
    return build_model(MODELS[name], split, f"cpu:{split.devices}", training=False, **of_step)


async def forward_logits(name: str, **given: Any) -> Array:  # Any: as those of `step`
    """Of all tokens [length, batch, vocabulary], on one device."""
    whole = step(name, microbatch=BATCH, sequence_length=LENGTH, **given)
    async with open_session(whole.graph, "cpu:1") as session:
        await session.run([], targets=whole.initialise)
        (logits,) = await session.run(whole.fetches, whole.feed(tokens=tokens()), targets=whole.targets)
    return logits.reshape(LENGTH, BATCH, VOCABULARY)


async def generated_logits(name: str, **given: Any) -> list[Array]:  # Any: as those of `step`
    """Of the last token of the beginning, and of each token behind it [batch, vocabulary], in one session."""
    prefill = step(name, inference="prefill", sequence_length=BEGINNING, context=CONTEXT, **given)
    decode = step(name, inference="decode", context=CONTEXT, **given).prefixed("decode")
    async with open_session(prefill.graph, f"cpu:{prefill.split.devices}") as session:
        await session.run([], targets=prefill.initialise)
        await session.extend(decode.graph)
        fed = [(prefill, tokens()[:, :BEGINNING])]
        fed += [(decode, tokens()[:, at : at + 1]) for at in range(BEGINNING, LENGTH)]
        return [
            np.concatenate(await session.run(one.fetches, one.feed(tokens=part), targets=one.targets))
            for one, part in fed
        ]


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize("split", SPLITS, ids=str)
@pytest.mark.parametrize("name", MODELS)
async def test_generated_logits_are_those_of_the_whole_pass(name: str, split: dict[str, Any], fused: bool) -> None:
    """A prefill, and tokens one by one behind it; dp ranks have sequences of their own."""
    wanted = (await forward_logits(name))[BEGINNING - 1 :]
    found = await generated_logits(name, fused=fused, **split)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["moe", "latent"])
async def test_experts_of_other_ranks_serve_tokens(name: str) -> None:
    """Ranks of dp share out the experts, when they decode too."""
    wanted = (await forward_logits(name))[BEGINNING - 1 :]
    found = await generated_logits(name, dp=2, ep=2, microbatch=2)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


async def read(built: ModelStep) -> dict[str, Array]:
    """The first values of all weights, by the first tensor of each."""
    names = list(built.weights)
    async with open_session(built.graph, "cpu:1") as session:
        await session.run([], targets=built.initialise)
        values = await session.run([built.parts_of(name)[0] for name in names])
    return dict(zip(names, values, strict=True))


async def test_weights_of_inference_have_the_type_of_the_products() -> None:
    """They are what a training step casts its masters to; what it does not cast, routers and norms, stays float32."""
    split = Split(microbatch=BATCH, precision="bfloat16")
    masters = await read(build_model(MODELS["moe"], split, "cpu:1", sequence_length=LENGTH))
    decoded = await read(build_model(MODELS["moe"], split, "cpu:1", inference="decode", context=CONTEXT))
    assert decoded.keys() == masters.keys()
    for name, value in decoded.items():
        is_wide = {"router", "norm"} & set(name.split("/"))
        assert value.dtype == (np.float32 if is_wide else ml_dtypes.bfloat16), name
        np.testing.assert_array_equal(value, masters[name].astype(value.dtype), name)


def test_a_step_says_what_it_computes() -> None:
    """Tokens of all sequences, the shapes that ranks are fed, and the logits of each dp rank."""
    fields: dict[str, Any] = {"dp": 2, "tp": 2, "microbatch": 2, "context": CONTEXT}  # Any: fields of a split
    prefill = step("llama", inference="prefill", sequence_length=BEGINNING, **fields)
    decode = step("llama", inference="decode", **fields)
    assert (prefill.tokens, decode.tokens) == (4 * BEGINNING, 4)
    assert set(prefill.feeds.values()) == {(2, BEGINNING)}
    assert decode.feeds == {"tokens": (2, 1), "rank_1/tokens": (2, 1), "rank_2/tokens": (2, 1), "rank_3/tokens": (2, 1)}
    assert decode.fetches == (decode.fetches[0], f"rank_2/{decode.fetches[0]}")
    assert [*decode.prefixed("a").feed(tokens=np.zeros((4, 1), np.int32))] == [f"a/{name}" for name in decode.feeds]


async def test_a_cache_that_is_full_is_an_error() -> None:
    """The token behind the last row has no place."""
    decode = step("llama", inference="decode", context=2, microbatch=1)
    token = decode.feed(tokens=np.zeros((1, 1), np.int32))
    async with open_session(decode.graph, "cpu:1") as session:
        await session.run([], targets=decode.initialise)
        for _ in range(2):
            await session.run(decode.fetches, token, targets=decode.targets)
        with pytest.raises(InvalidArgumentError):
            await session.run(decode.fetches, token, targets=decode.targets)


BERT = BertModel(2, 8, 4, 12, vocabulary=VOCABULARY, positions=8)
PREFILL: dict[str, Any] = {"inference": "prefill", "sequence_length": 4}  # Any: what build_model is given
DECODE: dict[str, Any] = {"inference": "decode", "context": CONTEXT}


@pytest.mark.parametrize(
    ("model", "split", "given", "message"),
    [
        ("llama", {}, {"inference": "decode"}, "needs context"),
        (
            "llama",
            {},
            {"context": 8, "sequence_length": 4},
            'context=8 are tokens of a cache; give inference="prefill"',
        ),
        ("llama", {}, {**DECODE, "sequence_length": 3}, "one token of each sequence is decoded; leave it out"),
        ("llama", {}, {**DECODE, "context": -1}, "context=-1 is no number of tokens"),
        ("llama", {}, {**PREFILL, "inference": "serve"}, "inference='serve' is none of prefill, decode"),
        ("llama", {}, {**PREFILL, "sequence_length": 1}, 'a single one is for inference="decode"'),
        ("llama", {}, {**PREFILL, "context": 3}, "sequence_length=4 tokens do not fit into context=3; give 4 or more"),
        ("llama", {"microbatches": 2}, DECODE, "microbatches=2: a step without training has none"),
        ("llama", {"dp": 2, "zero": 1}, DECODE, "zero=1: a step without training has none, nothing is trained; give 0"),
        ("llama", {"recompute": "full"}, DECODE, "recompute='full': a step without training has none"),
        ("gpt", {}, {**DECODE, "context": 9}, "context=9 is more than the model's positions=8; give that or less"),
        ("moe", {"tp": 2, "microbatch": 3}, DECODE, "microbatch=3 does not allow; give microbatch=2 or 4"),
        ("bert", {}, PREFILL, "BertModel does not go on token by token and keeps nothing; leave inference out"),
    ],
)
def test_what_makes_no_step_is_refused(model: str, split: Any, given: Any, message: str) -> None:
    """With what is wrong and what works."""
    with pytest.raises(InvalidArgumentError, match=message):
        build_model(MODELS.get(model, BERT), Split(**split), "cpu:2", **given)


def test_sequences_of_a_cache_are_not_shared_out() -> None:
    """Context parallelism has no caches."""
    with pytest.raises(UnimplementedError, match="not shared out over cp=2; give cp=1"):
        build_model(MODELS["llama"], Split(cp=2), "cpu:2", **DECODE)
