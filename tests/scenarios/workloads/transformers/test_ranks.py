"""The forward and backward pass of a model over ranks equals that of one rank, in float64."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from partita.graph.dtypes import Array
from partita.scenarios.models.bert import BertModel
from partita.scenarios.models.gpt import GptModel
from partita.scenarios.models.llama import LlamaModel
from partita.scenarios.models.moe import LatentAttention, MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.models.vit import VitModel

from .ranks import Ranks, Results, assert_equal

SEQUENCE, VOCABULARY = 8, 10
EXPERTS: dict[str, Any] = {"experts": 4, "topk": 2, "expert_intermediate": 6, "pad_vocabulary": 4}  # Any: fields
MODELS = {
    "gpt": GptModel(2, 8, 4, vocabulary=VOCABULARY, positions=12, pad_vocabulary=4),
    "llama": LlamaModel(2, 8, 4, 12, VOCABULARY, kv_heads=2, pad_vocabulary=4, qkv_bias=True, output_bias=True),
    "one kv head, tied": LlamaModel(2, 8, 4, 12, VOCABULARY, kv_heads=1, pad_vocabulary=8, qkv_bias=True, tied=True),
    "window": LlamaModel(2, 8, 4, 12, VOCABULARY, kv_heads=2, pad_vocabulary=1, window=3),
    "mixtral": MoeModel(2, 8, 4, 12, VOCABULARY, kv_heads=2, **EXPERTS),
    "deepseek": MoeModel(
        *(2, 8, 4, 12, VOCABULARY),
        **EXPERTS,
        shared_intermediate=8,
        dense_layers=1,
        router="sigmoid",
        router_bias=True,
        weight_scale=2.5,
        groups=2,
        groups_kept=1,
        group_score="top2",
        latent=LatentAttention(kv_rank=6, q_rank=5, nope_size=4, rope_size=2, value_size=3),
    ),
    "bert": BertModel(2, 8, 4, 12, vocabulary=VOCABULARY, positions=12, pad_vocabulary=4),
    "vit": VitModel(2, 8, 4, 12, image=8, patch=4, classes=5),
}
CASES: list[tuple[str, dict[str, Any]]] = [  # Any: fields of a split
    ("gpt", {"tp": 2}),
    ("gpt", {"tp": 2, "sequence_parallel": True, "microbatch": 2}),
    ("gpt", {"cp": 2, "cp_kind": "ring", "microbatch": 2}),
    ("gpt", {"cp": 2, "cp_kind": "heads", "tp": 2, "sequence_parallel": True}),
    ("gpt", {"pp": 2, "dp": 2, "tp": 2}),
    ("llama", {"tp": 2, "microbatch": 2}),
    ("llama", {"tp": 4}),
    ("llama", {"tp": 4, "cp": 2, "cp_kind": "ring", "sequence_parallel": True, "microbatch": 2}),
    ("llama", {"cp": 4, "cp_kind": "ring"}),
    ("llama", {"cp": 4, "cp_kind": "heads", "microbatch": 2}),
    ("one kv head, tied", {"tp": 4, "sequence_parallel": True}),
    ("one kv head, tied", {"tp": 2, "cp": 2, "cp_kind": "heads", "pp": 2}),
    ("window", {"tp": 2, "cp": 2, "cp_kind": "heads"}),
    ("mixtral", {"dp": 2, "ep": 2}),
    ("mixtral", {"dp": 4, "ep": 2, "microbatch": 2}),
    ("mixtral", {"dp": 4, "ep": 4, "pp": 2}),
    ("mixtral", {"dp": 2, "ep": 2, "tp": 2, "sequence_parallel": True, "microbatch": 2}),
    ("deepseek", {"tp": 2, "microbatch": 2}),
    ("deepseek", {"tp": 4, "sequence_parallel": True}),
    ("deepseek", {"dp": 2, "tp": 2, "cp": 2, "cp_kind": "heads", "ep": 2}),
    ("deepseek", {"dp": 2, "ep": 2, "tp": 2}),
    ("deepseek", {"dp": 2, "ep": 2, "cp": 2, "cp_kind": "ring", "microbatch": 2}),
    ("deepseek", {"dp": 2, "ep": 2, "cp": 2, "cp_kind": "heads", "tp": 2, "sequence_parallel": True}),
    ("bert", {"tp": 4, "sequence_parallel": True, "microbatch": 2}),
    ("bert", {"cp": 2, "cp_kind": "ring", "tp": 2, "sequence_parallel": True}),
    ("bert", {"cp": 2, "cp_kind": "heads"}),
    ("vit", {"tp": 2, "microbatch": 2}),
    ("vit", {"tp": 2, "pp": 2, "dp": 2, "sequence_parallel": True, "microbatch": 2}),
]


def batch_of(name: str, sequences: int) -> dict[str, Array]:
    """Inputs of a model; some tokens have no label."""
    rng = np.random.default_rng(3)
    if name == "vit":
        labels = rng.integers(0, 5, sequences, np.int32)
        return {"images": rng.standard_normal((sequences, 8, 8, 3)).astype(np.float32), "labels": labels}
    tokens, labels = rng.integers(0, VOCABULARY, (2, sequences, SEQUENCE), np.int32)
    labels[0, 1] = labels[-1, -2] = -1
    return {"tokens": tokens, "labels": labels}


def length_of(name: str) -> int:
    """The rows that a sequence has: patches and one more, of an image."""
    return MODELS[name].rows_of(SEQUENCE) or 0


@cache
def one_rank(name: str, sequences: int) -> Results:
    """The results of a model on one rank, in TensorFlow's ops."""
    return Ranks(MODELS[name], Split(microbatch=sequences), length_of(name)).run(**batch_of(name, sequences))


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize(("name", "fields"), CASES, ids=[f"{name} {fields}" for name, fields in CASES])
def test_ranks_have_the_losses_and_gradients_of_one_rank(name: str, fields: dict[str, Any], fused: bool) -> None:
    """Over tensor, sequence, context and data parallelism and stages, with own ops and in TensorFlow's."""
    split = Split(**fields)
    sequences = split.dp * split.microbatch
    expected = one_rank(name, sequences)
    ranks = Ranks(MODELS[name], split, length_of(name), fused=fused)
    assert_equal(ranks.run(**batch_of(name, sequences)), expected)


def test_every_rank_of_tp_has_the_logits_of_all_classes() -> None:
    """For the tokens of the first rank, without what pads the vocabulary."""
    expected = one_rank("gpt", 1)
    found = Ranks(MODELS["gpt"], Split(tp=2), SEQUENCE).run(**batch_of("gpt", 1))
    assert expected.logits.shape == (SEQUENCE, VOCABULARY)
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-12)
