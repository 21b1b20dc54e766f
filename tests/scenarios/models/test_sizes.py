"""Models from lists of sizes, and back; a path of a config.json stays one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import GptModel, LlamaModel, MoeModel
from partita.scenarios.models.description import ModelDescription
from partita.scenarios.models.sizes import model_of_sizes, read_model, sizes_of, sizes_text
from tests.scenarios.models.families import GPT3, LLAMA3_8B, MIXTRAL, published, written


@given(
    layers=st.integers(1, 200),
    kv_heads=st.sampled_from([1, 2, 4, 8]),
    width=st.integers(1, 64),
    intermediate=st.integers(1, 10**5),
    vocabulary=st.integers(1, 10**6),
)
def test_a_model_is_read_back_from_its_sizes(
    layers: int, kv_heads: int, width: int, intermediate: int, vocabulary: int
) -> None:
    """Where nothing but its sizes is its own."""
    model = LlamaModel(layers, 8 * width, 8, intermediate, vocabulary, kv_heads=kv_heads)
    assert read_model(LlamaModel, sizes_text(model)) == model


@pytest.mark.parametrize("model", [GPT3, LLAMA3_8B, MIXTRAL], ids=lambda model: type(model).__name__)
def test_published_models_are_read_back(model: ModelDescription) -> None:
    """Of each family."""
    assert read_model(type(model), sizes_text(model)) == model


def test_a_file_is_a_file(tmp_path: Path) -> None:
    """Also one whose name has an equals sign."""
    folder = written(tmp_path, published()["gpt2"].config)
    odd = folder / "layers=2.json"
    odd.write_bytes((folder / "config.json").read_bytes())
    assert read_model(GptModel, str(folder)) == read_model(GptModel, str(odd)) == GptModel.from_config(folder)


def test_sizes_are_whole_numbers_of_the_family() -> None:
    """Those that a model needs are known."""
    sizes = sizes_of(MoeModel)
    assert [name for name, needed in sizes.items() if needed] == [
        *("layers", "hidden", "heads", "intermediate", "vocabulary"),
        *("experts", "topk", "expert_intermediate"),
    ]
    assert {"epsilon", "rope", "qkv_bias", "router"}.isdisjoint(sizes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("layers=2,hidden=8", "LlamaModel: heads, intermediate, vocabulary must be given"),
        ("layers=2,hiden=8", "LlamaModel has no size 'hiden'; did you mean 'hidden'"),
        ("layers=two", "layers='two' is no whole number"),
    ],
)
def test_wrong_lists_are_refused(text: str, words: str) -> None:
    """With what is missing, or meant."""
    with pytest.raises(InvalidArgumentError, match=words):
        read_model(LlamaModel, text)


def test_a_size_of_another_family_is_refused() -> None:
    """By name."""
    with pytest.raises(InvalidArgumentError, match="GptModel has no size 'experts'"):
        model_of_sizes(GptModel, {"layers": 1, "hidden": 8, "heads": 1, "experts": 8})
