"""Layers of image networks for training, NHWC and float32; each keeps count of sides and channels.

    Maps(x, side=224, channels=3) --conv(64, 7, stride 2, SAME)--> Maps(side=112, channels=64)

A convolution has a bias, or the normalisation of training (statistics of the batch). As in the tf_cnn_benchmarks of
2017, except that moving averages of the statistics are not kept, and that images are NHWC where those were NCHW: the
operations and bytes of every layer are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from ...graph.builder.builder import GraphBuilder
from ...graph.builder.handles import Tensor
from .parameters import Parameters


class Maps(NamedTuple):
    """A tensor [images, side, side, channels]."""

    x: Tensor
    side: int
    channels: int


def sides(side: int, size: int, stride: int, padding: str) -> int:
    """The side after a window of `size`: padding is "SAME" or "VALID"."""
    return -(-side // stride) if padding == "SAME" else -(-(side - size + 1) // stride)


class ImageLayers:
    """Adds layers to the graph of a builder."""

    def __init__(self, b: GraphBuilder, parameters: Parameters) -> None:
        self.b = b
        self.parameters = parameters

    def conv(
        self,
        maps: Maps,
        channels: int,
        size: int | tuple[int, int],
        name: str,
        *,
        stride: int = 1,
        padding: str = "SAME",
        is_normed: bool = True,
        is_active: bool = True,
    ) -> Maps:
        """Convolution by filters of `size` (height, width), then normalisation or a bias, then Relu if active."""
        height, width = size if isinstance(size, tuple) else (size, size)
        fan_in = height * width * maps.channels
        filters = self.parameters.uniform(f"{name}/filters", (height, width, maps.channels, channels), sqrt(6 / fan_in))
        x = self.b.op("Conv2D", maps.x, filters, strides=[1, stride, stride, 1], padding=padding, name=f"{name}/conv")[
            0
        ]
        x = self._norm(x, channels, name) if is_normed else self._biased(x, channels, name)
        if is_active:
            x = self.b.op("Relu", x, name=f"{name}/relu")[0]
        return Maps(x, sides(maps.side, max(height, width), stride, padding), channels)

    def pool(
        self, maps: Maps, size: int, stride: int, name: str, *, op: str = "MaxPool", padding: str = "VALID"
    ) -> Maps:
        """The maximum, or with `op` = "AvgPool" the mean, of windows."""
        window, strides = [1, size, size, 1], [1, stride, stride, 1]
        x = self.b.op(op, maps.x, ksize=window, strides=strides, padding=padding, name=name)[0]
        return Maps(x, sides(maps.side, size, stride, padding), maps.channels)

    def joined(self, branches: Sequence[Maps], name: str) -> Maps:
        """The channels of all branches."""
        x = self.b.op("ConcatV2", [maps.x for maps in branches], 3, name=name)[0]
        return Maps(x, branches[0].side, sum(maps.channels for maps in branches))

    def features(self, maps: Maps) -> tuple[Tensor, int]:
        """The mean of every channel [images, channels], and how many there are."""
        return self.b.op("Mean", maps.x, [1, 2], name="features")[0], maps.channels

    def rows(self, maps: Maps) -> tuple[Tensor, int]:
        """All values of an image in a row [images, side * side * channels], and how many there are."""
        width = maps.side * maps.side * maps.channels
        return self.b.op("Reshape", maps.x, [-1, width], name="rows")[0], width

    def dense(self, x: Tensor, fan_in: int, fan_out: int, name: str) -> Tensor:
        """x @ weights + bias of x [images, fan_in]."""
        weights = self.parameters.uniform(f"{name}/weights", (fan_in, fan_out), sqrt(3 / fan_in))
        bias = self.parameters.full(f"{name}/bias", (fan_out,), 0.0)
        return self.b.op("BiasAdd", self.b.op("MatMul", x, weights, name=f"{name}/product"), bias, name=name)[0]

    def hidden(self, x: Tensor, fan_in: int, fan_out: int, name: str) -> Tensor:
        """A dense layer with Relu and dropout of one half."""
        x = self.b.op("Relu", self.dense(x, fan_in, fan_out, name), name=f"{name}/relu")[0]
        shape = self.b.op("Shape", x, name=f"{name}/shape")[0]  # not a constant: the batch may be split
        drawn = self.b.op("RandomUniform", shape, name=f"{name}/drawn", dtype="float32")
        kept = self.b.op("Floor", self.b.op("AddV2", drawn, np.float32(0.5)), name=f"{name}/kept")
        return self.b.op("Mul", x * np.float32(2), kept, name=f"{name}/dropped_out")[0]

    def _norm(self, x: Tensor, channels: int, name: str) -> Tensor:
        scale = self.parameters.full(f"{name}/gain", (channels,), 1.0)
        offset = self.parameters.full(f"{name}/offset", (channels,), 0.0)
        empty = [self.b.constant(np.zeros(0, np.float32)) for _ in range(2)]
        return self.b.op("FusedBatchNormV3", x, scale, offset, *empty, is_training=True, name=f"{name}/norm")[0]

    def _biased(self, x: Tensor, channels: int, name: str) -> Tensor:
        bias = self.parameters.full(f"{name}/bias", (channels,), 0.0)
        return self.b.op("BiasAdd", x, bias, name=f"{name}/biased")[0]
