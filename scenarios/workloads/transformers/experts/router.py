"""Which experts a token goes to, and how much each of them counts.

    softmax (Mixtral, DeepSeek V2)     scores = softmax(x W)      the topk largest are chosen
    sigmoid (DeepSeek V3)              scores = sigmoid(x W)      the topk largest scores + bias are chosen

    scores [.1 .4 .2 .3], topk 2    ->    experts [1 3], weights [.4 .3]; normalised [.57 .43]

Scores alone weigh: the bias, which balances loads, is a variable that no gradient reaches and that a step leaves as it
is. Choice can be limited to the experts of some groups: each token takes the `groups_kept` groups of the best score,
which is that of a group's best expert ("max", DeepSeek V2: arXiv 2405.04434, 2.2.2) or the sum of its two best ("top2",
DeepSeek V3: arXiv 2412.19437, 2.1.2). Scores are computed in float32 at least. Of equal scores the lower number wins.
There is no auxiliary loss that balances loads: the published models are trained with one that these steps leave out.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from .....graph.builder.handles import Tensor
from ....models.moe import MoeModel
from ..network import RankNetwork

_LEAST_SUM = 1e-20
"""added to a sum of sigmoids, which may all be 0, as DeepSeek V3 does"""


class Routing(NamedTuple):
    """The choice of each token."""

    experts: Tensor
    """int32 [rows, topk]: numbers of experts, the best first"""
    weights: Tensor
    """[rows, 1, topk], in the type of the scores"""


def route(network: RankNetwork, model: MoeModel, x: Tensor, partial_over: tuple[str, ...]) -> Routing:
    """The routing of x [rows, hidden] by a router of its own; `partial_over` as for `RankParameters.weight`."""
    b, parameters = network.b, network.parameters
    with b.scope("router"):
        shape = (model.hidden, model.experts)
        scale = sqrt(3 / model.hidden)
        weight = parameters.weight("weight", shape, scale=scale, partial_over=partial_over, is_cast=False)
        logits = b.op("MatMul", network.wide(x), weight, name="logits")
        scores = b.op("Sigmoid" if model.router == "sigmoid" else "Softmax", logits, name="scores")[0]
        preferred = scores
        if model.router_bias:
            bias = parameters.weight("bias", (model.experts,), start=0.0, is_trained=False, is_cast=False)
            preferred = b.op("AddV2", scores, bias, name="biased")[0]
        if model.groups_kept < model.groups:
            preferred = _in_best_groups(network, model, preferred)
        experts = b.op("TopKV2", preferred, model.topk, name="chosen")[1]
        return Routing(experts, _weights(network, model, scores, experts))


def _in_best_groups(network: RankNetwork, model: MoeModel, scores: Tensor) -> Tensor:
    """The scores of experts in the best groups of each row; those of others are minus infinity."""
    b = network.b
    grouped = network.reshaped(scores, [-1, model.groups, model.experts // model.groups], "grouped")
    if model.group_score == "top2":
        best = b.op("Sum", b.op("TopKV2", grouped, 2, name="two_best")[0], [2], name="group_scores")
    else:
        best = b.op("Max", grouped, [2], name="group_scores")
    kept = b.op("TopKV2", best, model.groups_kept, name="groups")[1]
    marks = b.op("Sum", b.op("OneHot", kept, model.groups, np.float32(1), np.float32(0)), [1])
    is_kept = b.op("Reshape", b.op("Greater", marks, np.float32(0)), [-1, model.groups, 1], name="is_kept")
    lowest = b.constant(-np.inf, scores.dtype)
    return network.reshaped(b.op("SelectV2", is_kept, grouped, lowest)[0], [-1, model.experts], "limited")


def _weights(network: RankNetwork, model: MoeModel, scores: Tensor, experts: Tensor) -> Tensor:
    """The scores of the chosen experts as [rows, 1, topk]: a product with ones where they are, exact in any type.

    Unlike a lookup by index its gradient is one product too.
    """
    b = network.b
    one, zero = b.constant(1, scores.dtype), b.constant(0, scores.dtype)
    places = b.op("OneHot", experts, model.experts, one, zero, name="places")
    rows = network.reshaped(scores, [-1, 1, model.experts])
    weights = b.op("BatchMatMulV2", rows, places, adj_y=True, name="weights")[0]
    if model.normalise_weights:
        total = b.op("Sum", weights, [2], keep_dims=True, name="total")[0]
        if model.router == "sigmoid":
            total = total + _LEAST_SUM
        weights = b.op("RealDiv", weights, total, name="normalised")[0]
    return weights if model.weight_scale == 1 else b.op("Mul", weights, model.weight_scale, name="scaled")[0]
