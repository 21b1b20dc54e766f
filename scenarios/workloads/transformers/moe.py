"""Mixtures of experts: Mixtral (arXiv 2401.04088), DeepSeek V2 (2405.04434) and V3 (2412.19437).

    x = tokens -> layers: x + attention(norm(x)), x + experts(norm(x)) -> norm -> logits

The first `dense_layers` have gated layers in place of experts. Attention is that of Llama, or latent. Auxiliary losses
of routers are not there: Mixtral's counts only where router logits are asked for, and DeepSeek V3's is next to nothing.
Nor is V3's prediction of further tokens.
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from ...models.moe import MoeModel
from .attention.latent import latent_attention
from .attention.layer import self_attention
from .experts.layers import experts_layers
from .feed_forward import swiglu_layers
from .llama import grouped_attention, next_token, token_rows
from .loss import ClassLogits
from .network import RankNetwork
from .norms import rms_norm


def moe(network: RankNetwork, model: MoeModel) -> ClassLogits:
    """The logits of the next token at each of the rank's tokens; "tokens" are int32 [batch, length]."""
    x, table = token_rows(network, model)
    for k in range(model.layers):
        with network.layer(k):
            with network.b.scope("attention"):
                x = x + _attention(network, rms_norm(network, x, model.hidden, "norm", model.epsilon), model)
            with network.b.scope("feed_forward"):
                normal = rms_norm(network, x, model.hidden, "norm", model.epsilon)
                x = x + _feed_forward(network, normal, model, is_dense=k < model.dense_layers)
    return next_token(network, model, x, table)


def _attention(network: RankNetwork, x: Tensor, model: MoeModel) -> Tensor:
    if model.latent is not None:
        return latent_attention(network, x, model, model.latent)
    return self_attention(network, x, grouped_attention(model))


def _feed_forward(network: RankNetwork, x: Tensor, model: MoeModel, *, is_dense: bool) -> Tensor:
    if is_dense:
        return swiglu_layers(network, x, model.hidden, model.intermediate)
    return experts_layers(network, model, x)
