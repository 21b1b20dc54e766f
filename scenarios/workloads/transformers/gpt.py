"""GPT-2 and GPT-3 (Radford et al. 2019, Brown et al. 2020): learned positions, norms before each branch, biases.

    x = tokens + positions -> layers: x + attention(norm(x)), x + gelu layers(norm(x)) -> norm -> logits

Dropout is left out. GELU is the approximation by tanh.
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from ...models.gpt import GptModel
from .attention.core import AttentionKind
from .attention.layer import AttentionLayer, self_attention
from .embedding import class_table, looked_up, tied_table, with_positions
from .feed_forward import gelu_layers
from .loss import ClassLogits, class_logits
from .network import RankNetwork
from .norms import layer_norm
from .sequence import input_rows


def gpt(network: RankNetwork, model: GptModel) -> ClassLogits:
    """The logits of the next token at each of the rank's tokens; "tokens" are int32 [batch, length]."""
    hidden, padded = model.hidden, model.padded_vocabulary(network.tp)
    tokens = network.tokens()
    with network.embedding():
        table = class_table(network, "tokens/table", model.vocabulary, padded, hidden)
        x = looked_up(network, table, input_rows(network, tokens), padded)
        x = with_positions(network, x, model.positions, hidden)
    size = model.head_size
    kind = AttentionKind(model.heads, model.heads, size, size, causal=True)
    for k in range(model.layers):
        with network.layer(k):
            x = _layer(network, x, model, AttentionLayer(hidden, kind, qkv_bias=True, output_bias=True))
    with network.last("head"):
        x = layer_norm(network, x, hidden, "norm", model.epsilon)
        if model.tied:
            table = tied_table(network, table)
        else:
            table = class_table(network, "table", model.vocabulary, padded, hidden)
        return class_logits(network, x, table, model.vocabulary, padded)


def _layer(network: RankNetwork, x: Tensor, model: GptModel, attention: AttentionLayer) -> Tensor:
    with network.b.scope("attention"):
        normal = layer_norm(network, x, model.hidden, "norm", model.epsilon)
        x = x + self_attention(network, normal, attention)
    with network.b.scope("feed_forward"):
        normal = layer_norm(network, x, model.hidden, "norm", model.epsilon)
        return x + gelu_layers(network, normal, model.hidden, model.intermediate, "tanh")
