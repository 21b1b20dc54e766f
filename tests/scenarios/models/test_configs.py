"""A config.json becomes a model: what is read, what has no effect, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partita.errors import InvalidArgumentError, NotFoundError, PartitaError, UnimplementedError
from partita.scenarios import (
    BertModel,
    DlrmModel,
    GptModel,
    LatentAttention,
    LlamaModel,
    ModelDescription,
    MoeModel,
    Rope,
    VitModel,
    model_from_config,
)
from tests.scenarios.models.families import LLAMA3_8B, published, written

LLAMA31 = {  # as Llama-3.1-8B is published
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "pretraining_tp": 1,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.43.0.dev0",
    "use_cache": True,
    "vocab_size": 128256,
}
DEEPSEEK = published()["deepseek_v3"].config
SMALL: dict[str, Any] = {"layers": 2, "hidden": 16, "heads": 4, "intermediate": 40, "vocabulary": 99}
LATENT = LatentAttention(kv_rank=10, q_rank=9, nope_size=6, rope_size=4, value_size=5)


def test_a_published_llama_is_read(tmp_path: Path) -> None:
    """Old spelling of the scaling; the folder stands for the file."""
    rope = Rope(500000.0, "llama3", 8.0, original_positions=8192)
    model = LlamaModel.from_config(written(tmp_path, LLAMA31))
    assert model == LlamaModel(32, 4096, 32, 14336, 128256, kv_heads=8, rope=rope)
    assert model.parameters == LLAMA3_8B.parameters
    assert model.left_out == ()
    assert model_from_config(tmp_path / "config.json") == model


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("gpt2", GptModel(2, 16, 4, 99, 32)),
        ("gpt2_inner", GptModel(3, 16, 4, 99, 32, intermediate=24, tied=False)),
        ("llama", LlamaModel(**SMALL, kv_heads=2, epsilon=1e-6)),
        ("qwen2", LlamaModel(**SMALL, kv_heads=2, epsilon=1e-6, qkv_bias=True)),
        ("qwen2_tied", LlamaModel(**SMALL, kv_heads=2, epsilon=1e-6, qkv_bias=True, tied=True, window=7)),
        ("mistral", LlamaModel(**SMALL, kv_heads=2, head_size=6, epsilon=1e-6, window=4096)),
        (
            "mixtral",
            MoeModel(**SMALL, kv_heads=2, rope=Rope(1e6), experts=4, topk=2, expert_intermediate=40),
        ),
        (
            "deepseek_v3",
            MoeModel(
                **SMALL,
                head_size=6,
                epsilon=1e-6,
                rope=Rope(1e4, "yarn", 40.0, original_positions=4096, mscale=1.0, mscale_all_dim=1.0),
                experts=8,
                topk=3,
                expert_intermediate=12,
                shared_intermediate=12,
                dense_layers=1,
                router="sigmoid",
                router_bias=True,
                groups=4,
                groups_kept=2,
                group_score="top2",
                weight_scale=2.5,
                latent=LATENT,
            ),
        ),
        (
            "deepseek_v2",
            MoeModel(
                **SMALL,
                head_size=6,
                epsilon=1e-6,
                rope=Rope(1e4, "yarn", 40.0, original_positions=4096, mscale=0.707, mscale_all_dim=0.707),
                experts=8,
                topk=3,
                expert_intermediate=12,
                shared_intermediate=24,
                dense_layers=1,
                groups=4,
                groups_kept=2,
                normalise_weights=False,
                weight_scale=16.0,
                latent=LATENT,
            ),
        ),
        ("bert", BertModel(2, 16, 4, 40, 99, 32)),
        ("vit", VitModel(2, 16, 4, 40, image=32, patch=8, classes=5)),
    ],
)
def test_a_file_of_transformers_is_read(name: str, model: ModelDescription, tmp_path: Path) -> None:
    """Every size and setting, by `model_from_config` and by the family's own `from_config`."""
    folder = written(tmp_path, published()[name].config)
    assert model_from_config(folder) == model
    assert type(model).from_config(folder) == model


def test_a_recommendation_model_is_a_file_of_our_own(tmp_path: Path) -> None:
    sizes = {"dense_features": 13, "tables": [100, 200], "embedding": 8, "bottom": [16, 8], "top": [16, 1]}
    folder = written(tmp_path, {"model_type": "dlrm", **sizes})
    assert model_from_config(folder) == DlrmModel(13, (100, 200), 8, (16, 8), (16, 1))


def test_what_the_model_does_without_is_said(tmp_path: Path) -> None:
    """Dropout, layers that predict further tokens, a loss that balances experts, quantised weights."""
    assert model_from_config(written(tmp_path, published()["gpt2"].config)).left_out == tuple(
        f"{name}=0.1: dropout is not there; the model is built without it"
        for name in ("attn_pdrop", "embd_pdrop", "resid_pdrop")
    )
    more = {"aux_loss_alpha": 0.001, "quantization_config": {"quant_method": "fp8"}}
    left_out = model_from_config(written(tmp_path, {**DEEPSEEK, **more})).left_out
    assert [text.partition("=")[0] for text in left_out] == ["num_nextn_predict_layers", *more]


@pytest.mark.parametrize(
    ("base", "field", "value", "message"),
    [
        (LLAMA31, "qk_norm", True, r"field 'qk_norm' \(true\) of a llama is not known"),
        (LLAMA31, "mlp_bias", True, "mlp_bias=true changes the mathematics, and a llama is built for false only"),
        (LLAMA31, "hidden_act", "gelu", 'hidden_act="gelu" changes .* "silu" or "swish" only'),
        (LLAMA31, "partial_rotary_factor", 0.5, "partial_rotary_factor=0.5 changes"),
        (LLAMA31, "architectures", ["LlamaForSequenceClassification"], "has another head"),
        (LLAMA31, "num_hidden_layers", None, "'num_hidden_layers' is missing; a llama needs num_hidden_layers, hidden"),
        (LLAMA31, "hidden_size", 4096.5, "hidden_size=4096.5 is not a positive whole number"),
        (LLAMA31, "num_key_value_heads", "8", "num_key_value_heads='8' is not a whole number"),
        (LLAMA31, "num_key_value_heads", 5, "kv_heads=5 does not divide heads=32"),
        (LLAMA31, "rms_norm_eps", 0, "rms_norm_eps=0 is not a positive number"),
        (LLAMA31, "attention_bias", "no", "attention_bias='no' is not true or false"),
        (LLAMA31, "rope_scaling", "yarn", "rope_scaling='yarn' is not an object"),
        (LLAMA31, "rope_scaling", {"type": "linear", "factor": 2.0, "beta_fast": 32}, "beta_fast=32 is not read by"),
        (LLAMA31, "rope_scaling", {"type": "linear", "partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not"),
        (LLAMA31, "rope_scaling", {"type": "mrope"}, "rope kind 'mrope' does not exist"),
        (DEEPSEEK, "topk_method", "greedy", 'built for "noaux_tc" only'),
        (DEEPSEEK, "moe_layer_freq", 2, "moe_layer_freq=2 changes"),
        (published()["deepseek_v2"].config, "norm_topk_prob", True, "norm_topk_prob=true changes"),
        (published()["mixtral"].config, "output_router_logits", True, "output_router_logits=true changes"),
        (published()["gpt2"].config, "scale_attn_by_inverse_layer_idx", True, "scale_attn_by_inverse_layer_idx=true"),
        (published()["bert"].config, "position_embedding_type", "relative_key", "position_embedding_type="),
        (published()["vit"].config, "image_size", [32, 64], "is not the side of a square"),
        (published()["qwen2_tied"].config, "layer_types", ["full_attention", "sliding_attention"], "others none"),
    ],
)
def test_what_changes_the_mathematics_is_refused_by_name(
    base: dict[str, Any], field: str, value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        model_from_config(written(tmp_path, {**base, field: value}))


def test_angles_that_depend_on_the_length_are_refused(tmp_path: Path) -> None:
    scaling = {"type": "dynamic", "factor": 2.0}
    with pytest.raises(UnimplementedError, match="rope kind 'dynamic': its angles depend on the length"):
        model_from_config(written(tmp_path, {**LLAMA31, "rope_scaling": scaling}))


def test_a_field_that_is_null_says_nothing(tmp_path: Path) -> None:
    assert model_from_config(written(tmp_path, {**LLAMA31, "qk_norm": None})).parameters == LLAMA3_8B.parameters


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"model_type": "lama"}', InvalidArgumentError, "'lama' is of no family; known are gpt2, llama, .*'llama'"),
        ('{"model_type": ["llama"]}', InvalidArgumentError, "is of no family"),
        ("{}", InvalidArgumentError, "model_type=None is of no family"),
        ("[1]", InvalidArgumentError, "the JSON is no object"),
        ("{", InvalidArgumentError, "no JSON"),
        (None, NotFoundError, "No such file"),
    ],
)
def test_a_file_that_is_no_config_is_refused(
    text: str | None, error: type[PartitaError], message: str, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(error, match=message):
        model_from_config(tmp_path)


def test_a_family_refuses_the_files_of_another(tmp_path: Path) -> None:
    """Also a mixture of experts that of a dense decoder, which it is built upon."""
    folder = written(tmp_path, json.loads(json.dumps(LLAMA31)))
    for family in (MoeModel, GptModel):
        with pytest.raises(InvalidArgumentError, match="model_type='llama' is not of this family"):
            family.from_config(folder)
