"""A small convolutional network for images of 32 x 32, its layers in order over any number of devices.

Placeholder: "images", float [images,32,32,3]. Result: "probabilities", float [images,10].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ...graph import GraphDef
from ...graph.builder.builder import GraphBuilder
from .layers import Layers
from .parameters import Constants

CLASSES = 10
CHANNELS = (3, 32, 64, 128)  # into the first convolution, out of the first, out of the second ...
SIDE = 32


def cnn(devices: Sequence[str]) -> GraphDef:
    """The network cut evenly: convolution k of three on device k * len(devices) // 4, the classifier on the last."""
    b = GraphBuilder()
    layers = Layers(b, Constants(b))
    x, side = b.placeholder("images", "float32", (None, SIDE, SIDE, CHANNELS[0]), device="/device:CPU:0"), SIDE
    for k, (channels_in, channels_out) in enumerate(pairwise(CHANNELS)):
        with b.device(devices[k * len(devices) // len(CHANNELS)]):
            x = layers.conv(x, channels_in, channels_out, 3, f"conv{k + 1}")
            x = layers.bias_relu(x, channels_out, f"conv{k + 1}")
            square = [1, 2, 2, 1]
            x = b.op("MaxPool", x, ksize=square, strides=square, padding="VALID", name=f"pool{k + 1}")[0]
        side //= 2
    with b.device(devices[-1]):
        features = side * side * CHANNELS[-1]
        rows = b.op("Reshape", x, [-1, features], name="rows")[0]
        hidden = layers.dense(rows, features, 128, "hidden", "Relu")
        b.op("Softmax", layers.dense(hidden, 128, CLASSES, "logits"), name="probabilities")
    return b.graph_def()
