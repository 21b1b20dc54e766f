"""A transformer encoder whose layers are split across devices (Shoeybi et al.: Megatron-LM, 2019, section 3).

Placeholder: "tokens", float [batch * length,width]. Result: "encoded", of the same shape. Target: "initialise". Each
device has its share of the heads and of the hidden units. The first device has the activations; twice a layer it sends
them to the others and adds their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

from ...graph import GraphDef
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from .layers import Layers
from .parameters import Variables


class TransformerSizes(NamedTuple):
    """The sizes of an encoder; heads must divide width, devices must divide heads and hidden."""

    batch: int
    length: int
    width: int
    heads: int
    hidden: int
    layers: int


# Layers, normalised activations, sizes, number of shares, name of the share -> the summand of the share.
Branch: TypeAlias = Callable[[Layers, Tensor, TransformerSizes, int, str], Tensor]


def transformer_encoder(devices: Sequence[str], sizes: TransformerSizes) -> GraphDef:
    """The encoder, pre-normalised, with softmax attention and Relu."""
    b = GraphBuilder()
    parameters = Variables(b)
    layers = Layers(b, parameters)
    rows = sizes.batch * sizes.length
    x = b.placeholder("tokens", "float32", (rows, sizes.width), device="/device:CPU:0")
    for k in range(sizes.layers):
        x = _with_branch(layers, x, devices, sizes, _attention, f"layer{k + 1}/attention")
        x = _with_branch(layers, x, devices, sizes, _mlp, f"layer{k + 1}/mlp")
    with b.device(devices[0]):
        b.identity(layers.layer_norm(x, sizes.width, "last_norm"), name="encoded")
    parameters.initialiser()
    return b.graph_def()


def _with_branch(
    layers: Layers, x: Tensor, devices: Sequence[str], sizes: TransformerSizes, branch: Branch, name: str
) -> Tensor:
    """x plus the sum of a branch of the normalised x, with a share of the branch per device."""
    b = layers.b
    with b.device(devices[0]):
        normal = layers.layer_norm(x, sizes.width, f"{name}/norm")
    shares = []
    for k, device in enumerate(devices):
        with b.device(device):
            shares.append(branch(layers, normal, sizes, len(devices), f"{name}/share{k}"))
    with b.device(devices[0]):
        return b.op("AddN", [x, *shares], name=f"{name}/sum")[0]


def _attention(layers: Layers, x: Tensor, sizes: TransformerSizes, shares: int, name: str) -> Tensor:
    """softmax(q k' / sqrt(d)) v of heads / shares heads, projected back to the width."""
    b, depth = layers.b, sizes.width // sizes.heads
    per_share = sizes.width // shares
    q, k, v = (_heads(layers, x, sizes, shares, f"{name}/{what}") for what in ("query", "key", "value"))
    scores = b.op("BatchMatMulV2", q, k, adj_y=True, name=f"{name}/scores") * (1 / sqrt(depth))
    mixed = b.op("BatchMatMulV2", b.op("Softmax", scores, name=f"{name}/softmax"), v, name=f"{name}/mixed")
    joined = b.op("Reshape", b.op("Transpose", mixed, [0, 2, 1, 3]), [-1, per_share], name=f"{name}/joined")[0]
    return layers.dense(joined, per_share, sizes.width, f"{name}/project")


def _heads(layers: Layers, x: Tensor, sizes: TransformerSizes, shares: int, name: str) -> Tensor:
    """A projection of x as [batch, heads / shares, length, width / heads]."""
    b, depth = layers.b, sizes.width // sizes.heads
    flat = layers.dense(x, sizes.width, sizes.width // shares, name)
    split = b.op("Reshape", flat, [sizes.batch, sizes.length, sizes.heads // shares, depth])
    return b.op("Transpose", split, [0, 2, 1, 3], name=f"{name}/heads")[0]


def _mlp(layers: Layers, x: Tensor, sizes: TransformerSizes, shares: int, name: str) -> Tensor:
    """hidden / shares units of the two dense layers."""
    units = sizes.hidden // shares
    hidden = layers.dense(x, sizes.width, units, f"{name}/widen", "Relu")
    return layers.dense(hidden, units, sizes.width, f"{name}/narrow")
