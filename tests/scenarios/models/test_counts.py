"""Parameters and flops of models, against published counts, transformers, and sums by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import InvalidArgumentError
from partita.scenarios import (
    BertModel,
    DlrmModel,
    GptModel,
    LlamaModel,
    ModelDescription,
    MoeModel,
    VitModel,
    model_from_config,
)
from tests.scenarios.models.families import GPT3, LLAMA3_8B, MIXTRAL, ROWS, Published, published, written


@pytest.mark.parametrize(
    ("model", "count"),
    [
        (GptModel(layers=12, hidden=768, heads=12), 124_439_808),  # GPT-2, transformers' GPT2LMHeadModel
        (LLAMA3_8B, 8_030_261_248),  # the model card
        (MIXTRAL, 46_702_792_704),  # the model card
        (BertModel(layers=12, hidden=768, heads=12, intermediate=3072), 109_514_298),  # transformers' BertForMaskedLM
        (VitModel(layers=12, hidden=768, heads=12, intermediate=3072), 86_567_656),  # ViTForImageClassification
        (LlamaModel.from_row(ROWS, "llama3_70b", layers=80), 70_553_706_496),  # the model card
        (LlamaModel.from_row(ROWS, "llama3_405b", layers=126, kv_heads=8), 405_853_388_800),  # the model card
        (MoeModel.from_row(ROWS, "deepseekv2", layers=60), 235_741_434_880),  # the model card
        (MoeModel.from_row(ROWS, "deepseekv3", layers=61), 671_026_404_352),  # transformers' DeepseekV3ForCausalLM
    ],
    ids=lambda it: type(it).__name__ if isinstance(it, ModelDescription) else f"{it:,}",
)
def test_parameters_are_those_that_are_published(model: ModelDescription, count: int) -> None:
    """To the last one, where all digits are published."""
    assert model.parameters == count


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        (GPT3, 175),  # Brown et al., 2020, table 2.1
        (LlamaModel.from_row(ROWS, "llama3_70b", layers=80), 70),  # Grattafiori et al., 2024
        (LlamaModel.from_row(ROWS, "llama3_405b", layers=126, kv_heads=8), 405),
        (MoeModel.from_row(ROWS, "deepseekv2", layers=60), 236),  # DeepSeek-V2, 2024
        (MoeModel.from_row(ROWS, "deepseekv3", layers=61), 671),  # DeepSeek-V3, 2024, without the layer behind the last
    ],
)
def test_parameters_are_within_one_percent_of_a_name(model: ModelDescription, billions: int) -> None:
    assert model.parameters / (billions * 1e9) == pytest.approx(1, abs=0.01)


def test_the_405b_row_has_twice_the_published_heads_of_keys() -> None:
    """The row says 16, the paper 8: as in the row the model has 1.04 % more parameters."""
    of_row = LlamaModel.from_row(ROWS, "llama3_405b", layers=126)
    assert (of_row.kv_heads, of_row.parameters) == (16, 410_081_247_232)


@pytest.mark.parametrize("case", published().values(), ids=published())
def test_parameters_are_those_of_transformers(case: Published, tmp_path: Path) -> None:
    """Of small models of every model_type, exactly; and what they multiply the scores of attention with."""
    model = model_from_config(written(tmp_path, case.config))
    assert model.parameters == case.parameters
    assert getattr(model, "softmax_scale") == pytest.approx(case.softmax_scale, rel=1e-6)  # noqa: B009 - of most models


def test_a_token_meets_the_experts_that_it_is_sent_to() -> None:
    """DeepSeek-V2: 21 B of 236 B active, V3: 37 B of 671 B as published, which leaves the embedding out."""
    v2, v3 = (MoeModel.from_row(ROWS, f"deepseekv{k}", layers=layers) for k, layers in ((2, 60), (3, 61)))
    assert v2.active_parameters == 21_375_800_320
    assert round((v3.active_parameters - v3.vocabulary * v3.hidden) / 1e9) == 37
    assert MIXTRAL.parameters - MIXTRAL.active_parameters == 32 * 6 * 3 * 4096 * 14336
    assert LLAMA3_8B.active_parameters == LLAMA3_8B.parameters


def test_flops_are_six_a_parameter_and_attention() -> None:
    """A block of GPT by hand, at h = 8, s = 16: products, each forwards once and backwards twice."""
    model = GptModel(layers=1, hidden=8, heads=2, vocabulary=10, positions=16)
    products = 8 * 24 + 8 * 8 + 8 * 32 + 32 * 8  # values of the four weights
    others = 10 * 8 + 16 * 8 + (24 + 8 + 32 + 8) + 6 * 8  # embeddings, biases, three norms: as if multiplied too
    scores = 2 * 16 * 8 + 2 * 16 * 8  # of one token with 16 keys, and their weighted sum: a product and a sum each
    assert model.flops_per_token(16) == 3 * (2 * (products + others) + scores)


@pytest.mark.parametrize("length", [1, 2048, 8192])
@pytest.mark.parametrize("model", [GPT3, LLAMA3_8B, BertModel(12, 768, 12, 3072)])
def test_flops_of_dense_models_are_6n_and_12lhs(model: GptModel | LlamaModel | BertModel, length: int) -> None:
    assert model.flops_per_token(length) == 6 * model.parameters + 12 * model.layers * model.hidden * length


def test_flops_of_the_others() -> None:
    """A window bounds what attention sees, experts count where a token is sent, latent heads have two sizes."""
    windowed = LlamaModel(2, 16, 4, 40, 99, window=5)
    assert windowed.flops_per_token(100) == 6 * windowed.parameters + 12 * 2 * 16 * 5
    assert MIXTRAL.flops_per_token(4096) == 6 * 12_879_925_248 + 12 * 32 * 4096 * 4096
    v3 = MoeModel.from_row(ROWS, "deepseekv3", layers=61)
    assert v3.flops_per_token(4096) - 6 * v3.active_parameters == 6 * 61 * 128 * (192 + 128) * 4096


def test_a_recommendation_multiplies_in_its_perceptrons_and_pairs() -> None:
    """Three vectors of 2: 3 pairs; layers 4-2 and 5-3-1 have 10, 18 and 4 values; a looked-up row costs nothing."""
    model = DlrmModel(dense_features=4, tables=(7, 9), embedding=2, bottom=(2,), top=(3, 1))
    assert (model.top_sizes, model.interactions) == ((5, 3, 1), 3)
    assert model.parameters == (7 + 9) * 2 + 10 + 18 + 4
    assert model.active_parameters == 2 * 2 + 10 + 18 + 4
    assert model.flops_per_token() == 6 * (10 + 18 + 4 + 3 * 2)


def test_a_vocabulary_is_padded_for_all_ranks() -> None:
    """To a multiple of 128 tp, or of the model's own; the padding is no parameter."""
    model = GptModel(layers=1, hidden=8, heads=2)
    assert [model.padded_vocabulary(tp) for tp in (1, 2, 8)] == [50304, 50432, 51200]
    assert GptModel(layers=1, hidden=8, heads=2, pad_vocabulary=1).padded_vocabulary(1) == 50257


@pytest.mark.parametrize("length", [0, -1])
def test_a_sequence_has_a_token(length: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"seq_len={length} is no positive number"):
        LLAMA3_8B.flops_per_token(length)
