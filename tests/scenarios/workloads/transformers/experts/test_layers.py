"""Layers of experts: values as by a loop over tokens, wherever the experts are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.models.split import Split
from partita.scenarios.workloads.transformers.experts.layers import experts_layers
from partita.scenarios.workloads.transformers.network import RankNetwork, RankSizes

from ..layers_of_ranks import run_layer

MODEL = MoeModel(
    *(1, 6, 2, 8, 16),
    experts=4,
    topk=2,
    expert_intermediate=5,
    shared_intermediate=8,
    router="sigmoid",
    router_bias=True,
    weight_scale=1.5,
)
SPLITS: list[dict[str, Any]] = [  # Any: fields of a split
    {},
    {"tp": 2},
    {"tp": 2, "sequence_parallel": True},
    {"dp": 2, "ep": 2},
    {"dp": 4, "ep": 4},
    {"dp": 4, "ep": 2},
    {"dp": 2, "ep": 2, "tp": 2},
]


def layer(network: RankNetwork, x: Tensor) -> Mapping[str, Tensor]:
    return {"y": experts_layers(network, MODEL, x)}


def silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)))


def expected(x: Array, weights: Mapping[str, Array], bias: Array) -> Array:
    """The layer, one token after the other."""
    rows = []
    for row in x:
        scores = 1 / (1 + np.exp(-row @ weights["router/weight"]))
        chosen = np.argsort(-(scores + bias))[: MODEL.topk]
        shares = scores[chosen] / scores[chosen].sum() * MODEL.weight_scale
        gate, up, down = (weights[f"shared/{name}/weights"] for name in ("gate", "up", "down"))
        total = silu(row @ gate) * (row @ up) @ down
        for expert, share in zip(chosen, shares, strict=True):
            gate, up, down = (weights[f"experts/{name}"][expert] for name in ("gate", "up", "down"))
            total = total + share * (silu(row @ gate) * (row @ up) @ down)
        rows.append(total)
    return np.array(rows)


@pytest.mark.parametrize("fused", [False, True], ids=["spelled", "fused"])
@pytest.mark.parametrize("fields", SPLITS, ids=str)
@pytest.mark.parametrize("favour", [None, 0, 3])
def test_every_token_gets_the_weighted_sum_of_its_experts(
    fields: dict[str, Any], favour: int | None, fused: bool
) -> None:
    """Also if all tokens choose one expert, so that other experts, or ranks, get few rows or none."""
    split = Split(**fields)
    bias = np.zeros(MODEL.experts)
    if favour is not None:
        bias[favour], bias[(favour + 1) % 2] = 20, 10
    x = np.random.default_rng(8).standard_normal((8, MODEL.hidden))
    whole = run_layer(layer, x, weights={"router/bias": bias}).weights
    run = run_layer(layer, x, split, fused=fused, weights={"router/bias": bias})
    y = expected(x, whole, bias)
    if fields.get("sequence_parallel"):
        np.testing.assert_allclose(np.concatenate([rank["y"] for rank in run.values]), y, rtol=1e-10)
        return
    for number, rank in enumerate(run.values):
        own = y.reshape(split.dp, -1, MODEL.hidden)[number // split.tp]
        np.testing.assert_allclose(rank["y"], own, rtol=1e-10)


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_ranks_of_tensor_parallelism_take_rows_of_zeros_where_they_do_not_divide(rows: int) -> None:
    """They are left out of the result."""
    x = np.random.default_rng(1).standard_normal((rows, MODEL.hidden))
    y = expected(x, run_layer(layer, x).weights, np.zeros(MODEL.experts))
    for rank in run_layer(layer, x, Split(tp=2)).values:
        np.testing.assert_allclose(rank["y"], y, rtol=1e-10)


def test_experts_that_ranks_cannot_share_out_are_refused() -> None:
    """Four experts over three ranks."""
    with pytest.raises(InvalidArgumentError, match="4 experts cannot be shared out over ep=3"):
        run_layer(layer, np.zeros((3, MODEL.hidden)), Split(dp=3, ep=3))


@pytest.mark.parametrize("imbalance", [0.5, 0.0, float("nan")])
def test_an_imbalance_is_one_or_more(imbalance: float) -> None:
    """The most by the mean."""
    with pytest.raises(InvalidArgumentError, match="give 1 or more"):
        RankSizes(1, 1, 1, ("/device:CPU:0",), imbalance=imbalance)
