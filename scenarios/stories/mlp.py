"""Story: a classifier of three layers in a pipeline of two GPUs, batch included, so that it runs without any flag.

It builds the graph of `examples/mlp.pb`; a test compares the two. The host has the batch and computes the loss; layers
1 and 2 are on one GPU, layer 3 on the other, so tensors cross three links. `python -m partita.scenarios.stories.mlp
FILE` writes the file again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ...graph import GraphDef, save_graph_def
from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from ...graph.dtypes import Array

BATCH, SIZES = 128, (48, 64, 32, 10)


def pseudo_random(*shape: int, seed: int) -> Array:
    """float32 numbers between -1 and 1 that are the same on every machine: a cubic congruence."""
    count = np.arange(seed, seed + int(np.prod(shape)), dtype=np.int64)
    return ((count**3 * 7919 % 20011) / 10005 - 1).astype(np.float32).reshape(shape)


def layer(b: GraphBuilder, x: Tensor, index: int) -> Tensor:
    """Dense layer `index` (from 1) before its activation: x @ w + b, with w scaled to keep activations near 1."""
    fan_in, fan_out = SIZES[index - 1], SIZES[index]
    with b.scope(f"layer{index}"):
        w = b.constant(pseudo_random(fan_in, fan_out, seed=1000 * index) * np.float32(np.sqrt(6 / fan_in)), name="w")
        bias = b.constant(pseudo_random(fan_out, seed=2000 * index), name="b")
        return b.op("BiasAdd", b.op("MatMul", x, w, name="product"), bias, name="out")[0]


def build() -> GraphDef:
    """The graph; its ends are "class", int64 [128], and "loss", a float scalar."""
    b = GraphBuilder()
    with b.device("/device:CPU:0"):
        batch = b.constant(pseudo_random(BATCH, SIZES[0], seed=7), name="batch")
        labels = b.constant((np.arange(BATCH) % SIZES[-1]).astype(np.int32), name="labels")
    with b.device("/device:GPU:0"):
        hidden = b.op("Relu", layer(b, batch, 1), name="hidden1")[0]
        hidden = b.op("Tanh", layer(b, hidden, 2), name="hidden2")[0]
    with b.device("/device:GPU:1"):
        logits = layer(b, hidden, 3)
    with b.device("/device:CPU:0"):
        b.op("ArgMax", logits, 1, name="class")
        losses = b.op("SparseSoftmaxCrossEntropyWithLogits", logits, labels, name="cross_entropy")[0]
        b.op("Mean", losses, 0, name="loss")
    return b.graph_def()


if __name__ == "__main__":
    save_graph_def(build(), Path(sys.argv[1]))
