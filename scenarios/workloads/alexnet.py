"""AlexNet on one device (Krizhevsky: One weird trick, 2014), as in tf_cnn_benchmarks: 61,100,840 weights.

There are no normalisations of local responses, and five convolutions of 64, 192, 384, 256 and 256 channels. Images are
224 wide and padded to 227 by whoever makes them.
"""

from __future__ import annotations

from ...graph.builder.handles import Tensor
from .image_layers import ImageLayers, Maps

SIDE = 227
CLASSES = 1000


def alexnet(layers: ImageLayers, images: Tensor) -> Tensor:
    """Logits [n, CLASSES] of images [n, SIDE, SIDE, 3]."""
    maps = layers.conv(Maps(images, SIDE, 3), 64, 11, "conv1", stride=4, padding="VALID", is_normed=False)
    maps = layers.conv(layers.pool(maps, 3, 2, "pool1"), 192, 5, "conv2", is_normed=False)
    maps = layers.pool(maps, 3, 2, "pool2")
    for k, channels in ((3, 384), (4, 256), (5, 256)):
        maps = layers.conv(maps, channels, 3, f"conv{k}", is_normed=False)
    x, width = layers.rows(layers.pool(maps, 3, 2, "pool5"))
    for k in (6, 7):
        x, width = layers.hidden(x, width, 4096, f"fc{k}"), 4096
    return layers.dense(x, width, CLASSES, "logits")
