"""VGG-16 (Simonyan, Zisserman: Very deep convolutional networks, 2014, configuration D): 138,357,544 weights."""

from __future__ import annotations

from ...graph.builder.handles import Tensor
from .image_layers import ImageLayers, Maps

SIDE = 224
CLASSES = 1000
_STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))  # convolutions and channels, then a pool


def vgg16(layers: ImageLayers, images: Tensor) -> Tensor:
    """Logits [n, CLASSES] of images [n, SIDE, SIDE, 3]."""
    maps = Maps(images, SIDE, 3)
    for stage, (convolutions, channels) in enumerate(_STAGES, 1):
        for k in range(1, convolutions + 1):
            maps = layers.conv(maps, channels, 3, f"conv{stage}_{k}", is_normed=False)
        maps = layers.pool(maps, 2, 2, f"pool{stage}")
    x, width = layers.rows(maps)
    for k in (6, 7):
        x, width = layers.hidden(x, width, 4096, f"fc{k}"), 4096
    return layers.dense(x, width, CLASSES, "logits")
