"""Layers of networks, NHWC and float32.

Each layer is a name scope. Weights are scaled so that the size of values stays the same from layer to layer.
"""

from __future__ import annotations

from math import sqrt

from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from .parameters import Parameters


class Layers:
    """Adds layers to the graph of a builder."""

    def __init__(self, b: GraphBuilder, parameters: Parameters) -> None:
        self.b = b
        self.parameters = parameters

    def dense(self, x: Tensor, fan_in: int, fan_out: int, name: str, activation: str = "") -> Tensor:
        """activation(x @ weights + bias) of x [rows, fan_in]; `activation` is an op such as "Relu"."""
        weights = self.parameters.uniform(f"{name}/weights", (fan_in, fan_out), sqrt(3 / fan_in))
        bias = self.parameters.full(f"{name}/bias", (fan_out,), 0.0)
        out = self.b.op("BiasAdd", self.b.op("MatMul", x, weights, name=f"{name}/product"), bias, name=f"{name}/out")
        return self.b.op(activation, out, name=f"{name}/{activation.lower()}")[0] if activation else out[0]

    def conv(self, x: Tensor, channels_in: int, channels_out: int, size: int, name: str, stride: int = 1) -> Tensor:
        """Convolution of x [images, height, width, channels_in] with square filters, SAME padding and no bias."""
        filters = self.parameters.uniform(
            f"{name}/filters", (size, size, channels_in, channels_out), sqrt(6 / (size * size * channels_in))
        )
        strides = [1, stride, stride, 1]
        return self.b.op("Conv2D", x, filters, strides=strides, padding="SAME", name=f"{name}/conv")[0]

    def bias_relu(self, x: Tensor, channels: int, name: str) -> Tensor:
        """max(x + bias, 0), a bias per channel."""
        bias = self.parameters.full(f"{name}/bias", (channels,), 0.1)
        return self.b.op("Relu", self.b.op("BiasAdd", x, bias, name=f"{name}/biased"), name=f"{name}/relu")[0]

    def batch_norm(self, x: Tensor, channels: int, name: str, gain: float = 1.0) -> Tensor:
        """Batch normalisation as in inference, with running mean 0 and variance 1."""
        values = {"gain": gain, "offset": 0.0, "mean": 0.0, "variance": 1.0}
        inputs = [self.parameters.full(f"{name}/{what}", (channels,), value) for what, value in values.items()]
        return self.b.op("FusedBatchNormV3", x, *inputs, is_training=False, name=f"{name}/norm")[0]

    def layer_norm(self, x: Tensor, width: int, name: str) -> Tensor:
        """(x - mean) / deviation over the last axis of x [rows, width], scaled and shifted."""
        mean = self.b.op("Mean", x, 1, keep_dims=True, name=f"{name}/mean")
        centred = self.b.op("Sub", x, mean, name=f"{name}/centred")
        variance = self.b.op("Mean", self.b.op("Square", centred), 1, keep_dims=True, name=f"{name}/variance")
        normal = centred * self.b.op("Rsqrt", variance + 1e-5)
        gain = self.parameters.full(f"{name}/gain", (width,), 1.0)
        return self.b.op("AddV2", normal * gain, self.parameters.full(f"{name}/offset", (width,), 0.0), name=name)[0]
