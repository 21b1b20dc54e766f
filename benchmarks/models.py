"""Models to measure with: a perceptron, ResNet-50, MobileNetV2 and four towers of convolutions, with drawn weights.

Activations stay near one, so that no kernel meets denormal numbers or infinities. Images are NHWC, the only layout that
TensorFlow computes on CPUs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array

from .workloads import Workload, device_name

MLP_SIZES = (784, 512, 512, 10)
RESNET_50 = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks and narrow channels of each stage
_WIDENING = 4
# Of each stage: widening, channels, blocks, stride of the first block (Sandler et al. 2018, table 2).
_MOBILE_NET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
_TOWERS, _TOWER_LAYERS, _TOWER_CHANNELS = 4, 4, 64


class _Weights:
    """Drawn weights as constants."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self._draw = np.random.default_rng(0)

    def matrix(self, *shape: int) -> Tensor:
        """Scaled for ReLU: variance two over the number of inputs, the product of all axes but the last."""
        scale = np.sqrt(2 / np.prod(shape[:-1]))
        return self._constant(self._draw.standard_normal(shape) * scale)

    def vector(self, size: int, middle: float) -> Tensor:
        """Numbers close to `middle`."""
        return self._constant(middle + 0.1 * self._draw.random(size))

    def _constant(self, value: Array) -> Tensor:
        return self.builder.constant(value.astype(np.float32), name="weight")


def mlp(batch: int, divisor: int = 1) -> Workload:
    """784-512-512-10 with ReLU between the layers and a softmax, hidden layers `divisor` times narrower."""
    b = GraphBuilder()
    weights = _Weights(b)
    sizes = [MLP_SIZES[0], *(size // divisor for size in MLP_SIZES[1:-1]), MLP_SIZES[-1]]
    shape = (batch, sizes[0])
    value = b.placeholder("x", "float32", shape)
    for fan_in, fan_out in pairwise(sizes):
        value = b.op("BiasAdd", b.op("MatMul", value, weights.matrix(fan_in, fan_out)), weights.vector(fan_out, 0))[0]
        if fan_out != sizes[-1]:
            value = b.op("Relu", value)[0]
    b.op("Softmax", value, name="y")
    return Workload(
        f"mlp {batch} {divisor}", b.graph_def().SerializeToString(deterministic=True), 1, {"x:0": shape}, ("y:0",)
    )


def resnet50(image: int = 224, divisor: int = 1) -> Workload:
    """ResNet-50 (He et al. 2015, table 1; stride in the 3x3 convolutions) for inference of one square image."""
    b = GraphBuilder()
    net = _ConvNet(b)
    shape = (1, image, image, 3)
    value = net.convolution(b.placeholder("x", "float32", shape), 3, 64 // divisor, 7, 2)
    value = b.op("MaxPool", value, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")[0]
    channels = 64 // divisor
    for stage, (blocks, narrow) in enumerate(RESNET_50):
        for index in range(blocks):
            stride = 2 if index == 0 and stage > 0 else 1
            value = net.block(value, channels, narrow // divisor, stride)
            channels = _WIDENING * narrow // divisor
    net.classify(value, channels)
    return Workload(
        f"resnet50 {image} {divisor}", b.graph_def().SerializeToString(deterministic=True), 1, {"x:0": shape}, ("y:0",)
    )


def mobile_net(image: int = 224, divisor: int = 1) -> Workload:
    """MobileNetV2 for inference of one square image."""
    b = GraphBuilder()
    net = _ConvNet(b)
    shape = (1, image, image, 3)
    channels = 32 // divisor
    value = net.convolution(b.placeholder("x", "float32", shape), 3, channels, 3, 2, activation="Relu6")
    for widening, fan_out, blocks, stride in _MOBILE_NET_V2:
        for index in range(blocks):
            value = net.inverted(value, channels, fan_out // divisor, widening, 1 if index else stride)
            channels = fan_out // divisor
    value = net.convolution(value, channels, 1280 // divisor, 1, 1, activation="Relu6")
    net.classify(value, 1280 // divisor)
    return Workload(
        f"mobilenet {image} {divisor}", b.graph_def().SerializeToString(deterministic=True), 1, {"x:0": shape}, ("y:0",)
    )


def towers(image: int = 56, divisor: int = 1) -> Workload:
    """Four towers of convolutions over one image, each on a device of its own, and the sum of what they give."""
    b = GraphBuilder()
    net = _ConvNet(b)
    channels = _TOWER_CHANNELS // divisor
    shape = (1, image, image, channels)
    x = b.placeholder("x", "float32", shape, device=device_name(0))
    ends = []
    for tower in range(_TOWERS):
        with b.device(device_name(tower)):
            value = x
            for _ in range(_TOWER_LAYERS):
                value = net.convolution(value, channels, channels, 3, 1)
            ends.append(b.op("Mean", value, b.constant([1, 2], "int32"), keep_dims=False)[0])
    b.op("AddN", ends, name="y", device=device_name(0))
    data = b.graph_def().SerializeToString(deterministic=True)
    return Workload(f"towers {image} {divisor}", data, 1, {"x:0": shape}, ("y:0",), devices=_TOWERS)


class _ConvNet:
    """The blocks of convolutional networks."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.b = builder
        self.weights = _Weights(builder)

    def convolution(
        self, value: Tensor, fan_in: int, fan_out: int, size: int, stride: int, *, activation: str = "Relu"
    ) -> Tensor:
        """Convolution, batch norm, and an activation, unless that is "" as the shortcut is added first."""
        kernel = self.weights.matrix(size, size, fan_in, fan_out)
        made = self.b.op("Conv2D", value, kernel, strides=[1, stride, stride, 1], padding="SAME")
        return self._normed(made[0], fan_out, activation)

    def _normed(self, value: Tensor, channels: int, activation: str) -> Tensor:
        vectors = [self.weights.vector(channels, middle) for middle in (1, 0, 0, 1)]
        normed = self.b.op("FusedBatchNormV3", value, *vectors, is_training=False)[0]
        return self.b.op(activation, normed)[0] if activation else normed

    def inverted(self, value: Tensor, fan_in: int, fan_out: int, widening: int, stride: int) -> Tensor:
        """1x1 to more channels, 3x3 of each channel alone, 1x1 to fewer; the shortcut where shapes allow it."""
        wide, inner = widening * fan_in, value
        if widening > 1:
            inner = self.convolution(inner, fan_in, wide, 1, 1, activation="Relu6")
        # Each output has nine inputs, whatever the number of channels.
        kernel = self.b.op("Reshape", self.weights.matrix(3, 3, 1, wide), self.b.constant([3, 3, wide, 1], "int32"))
        strides = [1, stride, stride, 1]
        inner = self.b.op("DepthwiseConv2dNative", inner, kernel, strides=strides, padding="SAME")[0]
        inner = self.convolution(self._normed(inner, wide, "Relu6"), wide, fan_out, 1, 1, activation="")
        return self.b.op("AddV2", inner, value)[0] if (fan_in, stride) == (fan_out, 1) else inner

    def classify(self, value: Tensor, channels: int) -> None:
        """The probabilities "y" of a thousand classes, from the mean of each channel."""
        pooled = self.b.op("Mean", value, self.b.constant([1, 2], "int32"), keep_dims=False)
        product = self.b.op("MatMul", pooled, self.weights.matrix(channels, 1000))
        self.b.op("Softmax", self.b.op("BiasAdd", product, self.weights.vector(1000, 0)), name="y")

    def block(self, value: Tensor, fan_in: int, narrow: int, stride: int) -> Tensor:
        """1x1, 3x3, 1x1 and the shortcut, which is a convolution where shapes change."""
        wide = _WIDENING * narrow
        inner = self.convolution(value, fan_in, narrow, 1, 1)
        inner = self.convolution(inner, narrow, narrow, 3, stride)
        inner = self.convolution(inner, narrow, wide, 1, 1, activation="")
        if stride != 1 or fan_in != wide:
            value = self.convolution(value, fan_in, wide, 1, stride, activation="")
        return self.b.op("Relu", self.b.op("AddV2", inner, value))[0]
