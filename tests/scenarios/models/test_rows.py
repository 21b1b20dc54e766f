"""Models from rows of a table: what is read, what is given beside it, and wrong names."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.errors import InvalidArgumentError, NotFoundError
from partita.scenarios import LatentAttention, LlamaModel, MoeModel
from tests.scenarios.models.families import ROWS


def test_a_row_has_sizes_and_the_rest_stands_beside() -> None:
    """DeepSeek-V3: the row knows no router."""
    router = {"router": "sigmoid", "router_bias": True, "groups": 8, "groups_kept": 4, "group_score": "top2"}
    model = MoeModel.from_row(ROWS, "deepseekv3", layers=61, **router, weight_scale=2.5)
    assert (model.layers, model.hidden, model.heads, model.dense_layers) == (61, 7168, 128, 3)
    assert (model.experts, model.topk, model.expert_intermediate, model.shared_intermediate) == (256, 8, 2048, 2048)
    assert model.latent == LatentAttention(kv_rank=512, q_rank=1536, nope_size=128, rope_size=64, value_size=128)
    assert (model.router, model.groups_kept, model.weight_scale) == ("sigmoid", 4, 2.5)


def test_what_stands_beside_counts_in_place_of_the_row() -> None:
    assert LlamaModel.from_row(ROWS, "llama3_405b", layers=126).kv_heads == 16
    assert LlamaModel.from_row(ROWS, "llama3_405b", layers=126, kv_heads=8).kv_heads == 8


def test_a_row_is_of_one_family() -> None:
    with pytest.raises(
        InvalidArgumentError, match="'deepseekv2' has expert_num=160: it is of another family; use MoeModel"
    ):
        LlamaModel.from_row(ROWS, "deepseekv2", layers=60)
    with pytest.raises(InvalidArgumentError, match="'llama3_70b' has no number in column 'expert_num': ''"):
        MoeModel.from_row(ROWS, "llama3_70b", layers=80)


def test_a_name_or_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="has no row 'llama3_7b'; did you mean 'llama3_70b'"):
        LlamaModel.from_row(ROWS, "llama3_7b", layers=80)
    with pytest.raises(NotFoundError, match="No such file"):
        LlamaModel.from_row(tmp_path / "none.csv", "llama3_70b", layers=80)
