"""ResNets for training, as tf_cnn_benchmarks had them in 2017: strides are in the first 1 x 1 convolution of a block.

    224 --stem--> 56 x 56 x 64 --3 blocks--> 256 --4--> 512 --6 (ResNet-152: 8 and 36)--> 1024 --3--> 2048 --> 1000

He, Zhang, Ren, Sun, 2015, table 1: ResNet-50 has 25,557,032 weights, ResNet-152 60,192,808.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...graph.builder.handles import Tensor
from .image_layers import ImageLayers, Maps
from .resnet50 import BLOCKS, CLASSES

SIDE = 224
_BLOCKS_152 = (3, 8, 36, 3)


def _trained_resnet(layers: ImageLayers, images: Tensor, *, blocks: Sequence[int]) -> Tensor:
    """Logits [n, CLASSES] of images [n, SIDE, SIDE, 3]; `blocks` are the bottlenecks of each stage."""
    maps = layers.conv(Maps(images, SIDE, 3), 64, 7, "stem", stride=2)
    maps = layers.pool(maps, 3, 2, "stem/pool", padding="SAME")
    for stage, depth in enumerate(blocks):
        for k in range(depth):
            maps = _block(layers, maps, 64 << stage, 2 if stage and not k else 1, f"stage{stage + 1}/block{k + 1}")
    x, width = layers.features(maps)
    return layers.dense(x, width, CLASSES, "logits")


def _block(layers: ImageLayers, maps: Maps, width: int, stride: int, name: str) -> Maps:
    """1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut, which is projected where channels change."""
    inner = layers.conv(maps, width, 1, f"{name}/reduce", stride=stride)
    inner = layers.conv(inner, width, 3, f"{name}/middle")
    inner = layers.conv(inner, 4 * width, 1, f"{name}/expand", is_active=False)
    if maps.channels != 4 * width:
        maps = layers.conv(maps, 4 * width, 1, f"{name}/shortcut", stride=stride, is_active=False)
    total = layers.b.op("AddV2", maps.x, inner.x, name=f"{name}/sum")
    return inner._replace(x=layers.b.op("Relu", total, name=f"{name}/out")[0])


trained_resnet50 = partial(_trained_resnet, blocks=BLOCKS)
"""the network of 50 layers with weights"""
trained_resnet152 = partial(_trained_resnet, blocks=_BLOCKS_152)
"""the network of 152 layers with weights"""
