"""Recommendation by embedding tables (Naumov et al. 2019, arXiv 1906.00091): shared out over dp, all else replicated.

    dense [batch, features] --bottom layers--> vector 0
    indices [batch, tables] --a row of each table--> vectors 1 .. tables
    products of all pairs of vectors, behind vector 0 --top layers--> logit --sigmoid--> chance of a click

A sample looks up one row of each table. Its loss is the binary cross entropy of its label, 0 or 1; samples with another
label have none and are not counted. There is nothing to be cut by tp or cp, and one stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....graph.builder.handles import Tensor
from ....graph.dtypes import DataType
from ...models.dlrm import DlrmModel
from .embedding_tables import looked_up_rows
from .loss import TokenLosses
from .network import RankNetwork
from .products import whole


@dataclass(frozen=True, slots=True)
class SampleForward:
    """The end of a forward pass with a logit for each sample, still open."""

    network: RankNetwork
    values: Tensor
    """[batch, 1]"""

    def losses(self) -> TokenLosses:
        """The binary cross entropies of "labels", int32 [batch]: log(1 + exp(logit)) - label * logit."""
        network, b = self.network, self.network.b
        labels = network.labels(is_one=True)
        with network.last("loss"):
            logits = network.reshaped(network.wide(self.values), [network.sizes.batch])
            wide = network.cast(labels, logits.dtype)
            losses = b.op("Sub", b.op("Softplus", logits), b.op("Mul", wide, logits), name="losses")
            is_label = b.op("LogicalAnd", b.op("GreaterEqual", labels, 0), b.op("LessEqual", labels, 1))
            counts = network.cast(is_label[0], logits.dtype)
            total = b.op("Sum", b.op("Mul", losses, counts), [0], name="total")[0]
            return TokenLosses(total, b.op("Sum", counts, [0], name="count")[0])

    def logits(self) -> Tensor:
        """[batch, 1] in float32 at least."""
        with self.network.last("logits"):
            return self.network.wide(self.values)


def dlrm(network: RankNetwork, model: DlrmModel) -> SampleForward:
    """The logits of samples; "dense" are float32 [batch, features], "indices" int32 [batch, tables]."""
    b, batch = network.b, network.sizes.batch
    dense = network.fed("dense", DataType.FLOAT, (batch, model.dense_features), 0)
    indices = network.fed("indices", DataType.INT32, (batch, len(model.tables)), 0)
    with network.embedding():
        rows = looked_up_rows(network, model.tables, model.embedding, indices)
    with network.layer(0):
        x = network.cast(dense, network.parameters.compute_type)
        with b.scope("bottom"):
            x = _layers(network, x, model.bottom_sizes, ends_in_relu=True)
        vectors = b.op("ConcatV2", [network.reshaped(x, [1, batch, -1]), rows], 0, name="vectors")[0]
        pairs = _pairs(network, network.transposed(vectors, [1, 0, 2]), 1 + len(model.tables))
        x = b.op("ConcatV2", [x, pairs], 1, name="with_pairs")[0]
    with network.last("head"):
        return SampleForward(network, _layers(network, x, model.top_sizes, ends_in_relu=False))


def _layers(network: RankNetwork, x: Tensor, sizes: Sequence[int], *, ends_in_relu: bool) -> Tensor:
    """Layers with biases, a Relu behind each but perhaps the last."""
    last = len(sizes) - 2
    for k in range(last + 1):
        x = whole(network, x, f"dense_{k}", (sizes[k], sizes[k + 1]))
        if k < last or ends_in_relu:
            x = network.b.op("Relu", x, name=f"dense_{k}/relu")[0]
    return x


def _pairs(network: RankNetwork, vectors: Tensor, count: int) -> Tensor:
    """The products of vectors i and j < i of each sample, of vectors [batch, count, width]: [batch, pairs]."""
    b = network.b
    products = b.op("BatchMatMulV2", vectors, vectors, adj_y=True, name="products")[0]
    by_pair = network.transposed(network.reshaped(products, [-1, count * count]), [1, 0])
    first, second = np.tril_indices(count, -1)
    kept = b.op("GatherV2", by_pair, (first * count + second).astype(np.int64), 0, name="pairs")[0]
    return network.transposed(kept, [1, 0])
