"""Routers choose and weigh experts as plain formulas do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from partita.graph.dtypes import Array
from partita.scenarios.models.moe import MoeModel
from partita.scenarios.workloads.transformers.experts.router import route

from ..layers_of_ranks import run_layer

MODEL = MoeModel(1, 6, 2, 8, 16, experts=8, topk=3, expert_intermediate=4)
GROUPED: dict[str, Any] = {"groups": 4, "groups_kept": 2}  # Any: fields of a model
KINDS: dict[str, dict[str, Any]] = {
    "mixtral": {},
    "weights as they are": {"normalise_weights": False},
    "deepseek v2": {**GROUPED, "normalise_weights": False, "weight_scale": 16.0},
    "deepseek v3": {**GROUPED, "group_score": "top2", "router": "sigmoid", "router_bias": True, "weight_scale": 2.5},
    "sigmoid without groups": {"router": "sigmoid", "router_bias": True},
}


def expected(model: MoeModel, x: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Experts and weights of each row, one row after the other."""
    experts, weights = [], []
    for row in x @ weight:
        scores = 1 / (1 + np.exp(-row)) if model.router == "sigmoid" else np.exp(row) / np.exp(row).sum()
        preferred = scores + bias if model.router_bias else scores.copy()
        groups = preferred.reshape(model.groups, -1)
        best = np.sort(groups, 1)[:, -2:].sum(1) if model.group_score == "top2" else groups.max(1)
        for group in np.argsort(-best)[model.groups_kept :]:
            groups[group] = -np.inf
        chosen = np.argsort(-groups.reshape(-1))[: model.topk]
        own = scores[chosen]
        experts.append(chosen)
        weights.append((own / own.sum() if model.normalise_weights else own) * model.weight_scale)
    return np.array(experts), np.array(weights)


@pytest.mark.parametrize("kind", KINDS)
def test_experts_and_weights_are_those_of_the_formula(kind: str) -> None:
    """With a bias that changes the choice and no weight."""
    model = replace(MODEL, **KINDS[kind])
    rng = np.random.default_rng(5)
    x, bias = rng.standard_normal((40, model.hidden)), rng.standard_normal(model.experts) / 3

    def layer(network: Any, rows: Any) -> dict[str, Any]:  # as `Layer`
        return route(network, model, rows, ())._asdict()

    run = run_layer(layer, x, weights={"router/bias": bias} if model.router_bias else {})
    found = run.values[0]
    experts, weights = expected(model, x, run.weights["router/weight"], bias)
    np.testing.assert_array_equal(found["experts"], experts)
    np.testing.assert_allclose(found["weights"][:, 0], weights, rtol=1e-12)
    if model.router_bias:
        assert (experts != expected(model, x, run.weights["router/weight"], 0 * bias)[0]).any()
        assert not run.weights["router/bias"].any()
