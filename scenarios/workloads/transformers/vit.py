"""The vision transformer (Dosovitskiy et al. 2020): patches of an image are its tokens, a class token is in front.

    image [224, 224, 3] -> 196 patches of 16 x 16 -> class token and patches + positions, 197 rows
      -> layers: x + attention(norm(x)), x + gelu layers(norm(x)) -> norm -> the class token's row -> logits

The ranks of tp compute the same embeddings and have a part of the classes each. There is no context parallelism: one
row more than patches is no number to be shared out. Dropout is left out.
"""

from __future__ import annotations

from math import sqrt

from ....errors import UnimplementedError
from ....graph.builder.handles import Tensor
from ....graph.dtypes import DataType
from ...models.vit import VitModel
from .attention.core import AttentionKind
from .attention.layer import AttentionLayer, self_attention
from .embedding import class_table
from .feed_forward import gelu_layers
from .loss import ClassLogits, logits_of_rows
from .network import RankNetwork
from .norms import layer_norm
from .products import entered


def vit(network: RankNetwork, model: VitModel) -> ClassLogits:
    """The logits of the classes of each image [batch, classes]; "images" are float32 [batch, side, side, channels].

    Raises UnimplementedError for context parallelism.
    """
    if network.cp > 1:
        raise UnimplementedError(f"images have no sequence that cp={network.cp} ranks could share; use cp=1")
    images = network.fed("images", DataType.FLOAT, (network.sizes.batch, model.image, model.image, model.channels), 0)
    with network.embedding():
        x = network.own(_embedded(network, model, network.cast(images, network.parameters.compute_type)), "own")
    size = model.hidden // model.heads
    kind = AttentionKind(model.heads, model.heads, size, size, causal=False)
    for k in range(model.layers):
        with network.layer(k):
            x = _layer(network, x, model, AttentionLayer(model.hidden, kind, qkv_bias=True, output_bias=True))
    with network.last("head"):
        x = entered(network, layer_norm(network, x, model.hidden, "norm", model.epsilon))
        first = network.b.op("Slice", x, [0, 0], [network.sizes.batch, model.hidden], name="class_rows")[0]
        padded = -(-model.classes // network.tp) * network.tp
        table = class_table(network, "table", model.classes, padded, model.hidden)
        bias = network.vector("bias", padded, 0.0, is_split=True)
        return logits_of_rows(network, first, table, model.classes, padded, bias=bias)


def _embedded(network: RankNetwork, model: VitModel, images: Tensor) -> Tensor:
    """Class token and patches with their positions: [rows, hidden], the rows of class tokens first."""
    b, batch, hidden = network.b, network.sizes.batch, model.hidden
    side, patch = model.image // model.patch, model.patch
    pixels = patch * patch * model.channels
    cut = network.reshaped(images, [batch, side, patch, side, patch, model.channels])
    flat = network.reshaped(network.transposed(cut, [1, 3, 0, 2, 4, 5]), [side * side * batch, pixels], "patches")
    weights = network.matrix("patches/weights", (pixels, hidden), pixels)
    bias = network.vector("patches/bias", hidden, 0.0)
    rows = b.op("BiasAdd", network.product(flat, weights, "patches/product"), bias, name="patches/out")
    first = network.parameters.weight("class", (1, hidden), scale=sqrt(3 / hidden), partial_over=network.partial)
    x = b.op("ConcatV2", [b.op("Tile", first, [batch, 1]), rows], 0, name="class_and_patches")[0]
    positions = network.matrix("positions/table", (side * side + 1, hidden), hidden)
    count = network.sizes.sequence
    by_position = network.reshaped(x, [count, batch, hidden]) + network.reshaped(positions, [count, 1, hidden])
    return network.reshaped(by_position, [network.rows, hidden], "with_positions")


def _layer(network: RankNetwork, x: Tensor, model: VitModel, attention: AttentionLayer) -> Tensor:
    with network.b.scope("attention"):
        normal = layer_norm(network, x, model.hidden, "norm", model.epsilon)
        x = x + self_attention(network, normal, attention)
    with network.b.scope("feed_forward"):
        normal = layer_norm(network, x, model.hidden, "norm", model.epsilon)
        return x + gelu_layers(network, normal, model.hidden, model.intermediate, "exact")
