"""Llama, Qwen2 and Mistral (Touvron et al. 2023): rotary positions, RMSNorm before each branch, gated layers.

x = tokens -> layers: x + attention(norm(x)), x + down(silu(gate) * up)(norm(x)) -> norm -> logits
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from ...models.llama import LlamaModel
from .attention.core import AttentionKind
from .attention.layer import AttentionLayer, Turning, self_attention
from .embedding import class_table, looked_up, tied_table
from .feed_forward import swiglu_layers
from .loss import ClassLogits, class_logits
from .network import RankNetwork
from .norms import rms_norm
from .sequence import input_rows


def llama(network: RankNetwork, model: LlamaModel) -> ClassLogits:
    """The logits of the next token at each of the rank's tokens; "tokens" are int32 [batch, length]."""
    x, table = token_rows(network, model)
    attention = grouped_attention(model)
    for k in range(model.layers):
        with network.layer(k):
            with network.b.scope("attention"):
                x = x + self_attention(network, rms_norm(network, x, model.hidden, "norm", model.epsilon), attention)
            with network.b.scope("feed_forward"):
                normal = rms_norm(network, x, model.hidden, "norm", model.epsilon)
                x = x + swiglu_layers(network, normal, model.hidden, model.intermediate)
    return next_token(network, model, x, table)


def token_rows(network: RankNetwork, model: LlamaModel) -> tuple[Tensor, Tensor]:
    """The embeddings of the tokens [own rows, hidden], and the table that they are from."""
    padded = model.padded_vocabulary(network.tp)
    tokens = network.tokens()
    with network.embedding():
        table = class_table(network, "tokens/table", model.vocabulary, padded, model.hidden)
        return looked_up(network, table, input_rows(network, tokens), padded), table


def grouped_attention(model: LlamaModel) -> AttentionLayer:
    """The attention of each layer."""
    size = model.head_size
    kind = AttentionKind(model.heads, model.kv_heads, size, size, causal=True, window=model.window)
    turning = Turning(model.rope.frequencies(size), model.rope.attention_scale)
    return AttentionLayer(model.hidden, kind, model.qkv_bias, model.output_bias, turning)


def next_token(network: RankNetwork, model: LlamaModel, x: Tensor, table: Tensor) -> ClassLogits:
    """The logits of x [own rows, hidden] behind the last layer; a tied model's are by the table of the embedding."""
    padded = model.padded_vocabulary(network.tp)
    with network.last("head"):
        x = rms_norm(network, x, model.hidden, "norm", model.epsilon)
        if model.tied:
            table = tied_table(network, table)
        else:
            table = class_table(network, "table", model.vocabulary, padded, model.hidden)
        return class_logits(network, x, table, model.vocabulary, padded)
