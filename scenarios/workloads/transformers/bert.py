"""BERT (Devlin et al. 2018): both directions, norms behind each branch, a masked language model over all positions.

    x = norm(tokens + positions + type 0) -> layers: norm(x + attention(x)), norm(x + gelu layers(x))
      -> norm(gelu(x @ transform)) -> logits by the table of tokens, plus a bias

Tokens whose label is -1 have no loss. All tokens are of type 0, as where a program gives no types. The pooler and the
prediction of the next sentence read nothing that has a loss here and are not built. Dropout is left out.
"""

from __future__ import annotations

from ....graph.builder.handles import Tensor
from ...models.bert import BertModel
from .attention.core import AttentionKind
from .attention.layer import AttentionLayer, self_attention
from .embedding import class_table, looked_up, tied_table, with_positions
from .feed_forward import gelu, gelu_layers
from .loss import ClassLogits, class_logits
from .network import RankNetwork
from .norms import layer_norm
from .products import whole
from .sequence import input_rows


def bert(network: RankNetwork, model: BertModel) -> ClassLogits:
    """The logits of the token at each of the rank's places; "tokens" are int32 [batch, length]."""
    padded = model.padded_vocabulary(network.tp)
    x, table = _embedded(network, model, padded)
    size = model.hidden // model.heads
    kind = AttentionKind(model.heads, model.heads, size, size, causal=False)
    attention = AttentionLayer(model.hidden, kind, qkv_bias=True, output_bias=True)
    for k in range(model.layers):
        with network.layer(k):
            with network.b.scope("attention"):
                x = _norm(network, model, x + self_attention(network, x, attention))
            with network.b.scope("feed_forward"):
                x = _norm(network, model, x + gelu_layers(network, x, model.hidden, model.intermediate, "exact"))
    with network.last("head"):
        x = gelu(network, whole(network, x, "transform", (model.hidden, model.hidden)), "exact")
        bias = network.vector("bias", padded, 0.0, is_split=True)
        table = tied_table(network, table)
        return class_logits(network, _norm(network, model, x), table, model.vocabulary, padded, bias=bias)


def _embedded(network: RankNetwork, model: BertModel, padded: int) -> tuple[Tensor, Tensor]:
    """The embeddings of the tokens [own rows, hidden], and the table that they are from."""
    tokens = network.tokens()
    with network.embedding():
        table = class_table(network, "tokens/table", model.vocabulary, padded, model.hidden)
        x = looked_up(network, table, input_rows(network, tokens), padded)
        types = network.matrix("types/table", (model.types, model.hidden), model.hidden)
        first = network.b.op("Slice", types, [0, 0], [1, model.hidden], name="types/first")[0]
        x = with_positions(network, x, model.positions, model.hidden)
        return _norm(network, model, x + first), table


def _norm(network: RankNetwork, model: BertModel, x: Tensor) -> Tensor:
    return layer_norm(network, x, model.hidden, "norm", model.epsilon)
