"""Models that tests of this folder share, and the configs and counts that transformers gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from partita.scenarios import GptModel, LlamaModel, MoeModel

DATA = Path(__file__).parent / "data"
ROWS = DATA / "llm_models.csv"

GPT3 = GptModel(layers=96, hidden=12288, heads=96, positions=2048)
LLAMA3_8B = LlamaModel(layers=32, hidden=4096, heads=32, intermediate=14336, vocabulary=128256, kv_heads=8)
MIXTRAL = MoeModel(
    layers=32,
    hidden=4096,
    heads=32,
    intermediate=14336,
    vocabulary=32000,
    kv_heads=8,
    experts=8,
    topk=2,
    expert_intermediate=14336,
)


class Published(NamedTuple):
    """What transformers says of a config.json; `frequencies` and `attention_scale` of models with rotary positions."""

    config: dict[str, Any]  # Any: the values of JSON
    parameters: int
    softmax_scale: float | None
    frequencies: list[float] | None = None
    attention_scale: float | None = None


def published() -> dict[str, Published]:
    """By case; data/transformers.json says which version, and of what."""
    cases = json.loads((DATA / "transformers.json").read_text())
    del cases["source"]
    return {name: Published(**case) for name, case in cases.items()}


def written(folder: Path, config: dict[str, Any]) -> Path:
    """The folder, with a config.json in it."""
    (folder / "config.json").write_text(json.dumps(config))
    return folder
