"""Models to measure with: a perceptron of three layers and ResNet-50, with constant weights from a fixed seed.

Activations stay near one, so that no kernel meets denormal numbers or infinities. Images are NHWC, the only layout that
TensorFlow computes on CPUs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Tensor
from partita.graph.dtypes import Array

from .workloads import Workload

MLP_SIZES = (784, 512, 512, 10)
RESNET_50 = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks and narrow channels of each stage
_WIDENING = 4


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
    net = _ResNet(b)
    shape = (1, image, image, 3)
    value = net.convolution(b.placeholder("x", "float32", shape), 3, 64 // divisor, 7, 2)
    value = b.op("MaxPool", value, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")[0]
    channels = 64 // divisor
    for stage, (blocks, narrow) in enumerate(RESNET_50):
        for index in range(blocks):
            stride = 2 if index == 0 and stage > 0 else 1
            value = net.block(value, channels, narrow // divisor, stride)
            channels = _WIDENING * narrow // divisor
    pooled = b.op("Mean", value, b.constant([1, 2], "int32"), keep_dims=False)
    logits = b.op("BiasAdd", b.op("MatMul", pooled, net.weights.matrix(channels, 1000)), net.weights.vector(1000, 0))
    b.op("Softmax", logits, name="y")
    return Workload(
        f"resnet50 {image} {divisor}", b.graph_def().SerializeToString(deterministic=True), 1, {"x:0": shape}, ("y:0",)
    )


class _ResNet:
    """The blocks of a residual network."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.b = builder
        self.weights = _Weights(builder)

    def convolution(
        self, value: Tensor, fan_in: int, fan_out: int, size: int, stride: int, *, is_last: bool = False
    ) -> Tensor:
        """Convolution, batch norm, and ReLU unless the shortcut is added first."""
        kernel = self.weights.matrix(size, size, fan_in, fan_out)
        made = self.b.op("Conv2D", value, kernel, strides=[1, stride, stride, 1], padding="SAME")
        vectors = [self.weights.vector(fan_out, middle) for middle in (1, 0, 0, 1)]
        normed = self.b.op("FusedBatchNormV3", made, *vectors, is_training=False)[0]
        return normed if is_last else self.b.op("Relu", normed)[0]

    def block(self, value: Tensor, fan_in: int, narrow: int, stride: int) -> Tensor:
        """1x1, 3x3, 1x1 and the shortcut, which is a convolution where shapes change."""
        wide = _WIDENING * narrow
        inner = self.convolution(value, fan_in, narrow, 1, 1)
        inner = self.convolution(inner, narrow, narrow, 3, stride)
        inner = self.convolution(inner, narrow, wide, 1, 1, is_last=True)
        if stride != 1 or fan_in != wide:
            value = self.convolution(value, fan_in, wide, 1, stride, is_last=True)
        return self.b.op("Relu", self.b.op("AddV2", inner, value))[0]
