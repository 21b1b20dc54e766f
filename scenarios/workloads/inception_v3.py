"""Inception-v3 (Szegedy et al.: Rethinking the Inception architecture, 2015), without the auxiliary classifier.

    299 --stem--> 35 x 35 x 192 --3 x A--> 35 x 35 x 288 --reduce--> 17 x 17 x 768 --4 x B--> 17 x 17 x 768
        --reduce--> 8 x 8 x 1280 --2 x C--> 8 x 8 x 2048 --mean--> 2048 --dense--> 1000

23,834,568 weights, as torchvision's without its auxiliary classifier. A block is branches beside each other, whose
channels are joined; a branch is convolutions in order, each (channels, size) or (channels, size, stride).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.builder.handles import Tensor
from .image_layers import ImageLayers, Maps

SIDE = 299
CLASSES = 1000
_Size = int | tuple[int, int]
_Convolutions = Sequence[tuple[int, _Size]]
_ROW, _COLUMN = (1, 7), (7, 1)


def inception_v3(layers: ImageLayers, images: Tensor) -> Tensor:
    """Logits [n, CLASSES] of images [n, SIDE, SIDE, 3]."""
    maps = _stem(layers, Maps(images, SIDE, 3))
    for k, pooled in enumerate((32, 64, 64)):
        branches: list[_Convolutions] = [[(64, 1)], [(48, 1), (64, 5)], [(64, 1), (96, 3), (96, 3)]]
        maps = _block(layers, maps, branches, pooled, f"a{k + 1}")
    maps = _reduced(layers, maps, [[(384, 3)], [(64, 1), (96, 3), (96, 3)]], "reduce1")
    for k, c in enumerate((128, 160, 160, 192)):
        branches = [
            [(192, 1)],
            [(c, 1), (c, _ROW), (192, _COLUMN)],
            [(c, 1), (c, _COLUMN), (c, _ROW), (c, _COLUMN), (192, _ROW)],
        ]
        maps = _block(layers, maps, branches, 192, f"b{k + 1}")
    maps = _reduced(layers, maps, [[(192, 1), (320, 3)], [(192, 1), (192, _ROW), (192, _COLUMN), (192, 3)]], "reduce2")
    for k in range(2):
        maps = _wide(layers, maps, f"c{k + 1}")
    x, width = layers.features(maps)
    return layers.dense(x, width, CLASSES, "logits")


def _stem(layers: ImageLayers, maps: Maps) -> Maps:
    maps = layers.conv(maps, 32, 3, "stem1", stride=2, padding="VALID")
    maps = layers.conv(maps, 32, 3, "stem2", padding="VALID")
    maps = layers.pool(layers.conv(maps, 64, 3, "stem3"), 3, 2, "stem_pool1")
    maps = layers.conv(maps, 80, 1, "stem4", padding="VALID")
    return layers.pool(layers.conv(maps, 192, 3, "stem5", padding="VALID"), 3, 2, "stem_pool2")


def _branch(layers: ImageLayers, maps: Maps, branch: _Convolutions, name: str) -> Maps:
    for k, (channels, size) in enumerate(branch):
        maps = layers.conv(maps, channels, size, f"{name}_{k + 1}")
    return maps


def _pooled(layers: ImageLayers, maps: Maps, channels: int, name: str) -> Maps:
    """The mean of the neighbours, projected."""
    mean = layers.pool(maps, 3, 1, f"{name}_mean", op="AvgPool", padding="SAME")
    return layers.conv(mean, channels, 1, f"{name}_projected")


def _block(layers: ImageLayers, maps: Maps, branches: Sequence[_Convolutions], pooled: int, name: str) -> Maps:
    outs = [_branch(layers, maps, branch, f"{name}/branch{k + 1}") for k, branch in enumerate(branches)]
    return layers.joined([*outs, _pooled(layers, maps, pooled, f"{name}/pool")], f"{name}/joined")


def _reduced(layers: ImageLayers, maps: Maps, branches: Sequence[_Convolutions], name: str) -> Maps:
    """Branches whose last convolution halves the sides, beside a maximum."""
    outs = []
    for k, branch in enumerate(branches):
        *first, (channels, size) = branch
        last = _branch(layers, maps, first, f"{name}/branch{k + 1}")
        outs.append(layers.conv(last, channels, size, f"{name}/branch{k + 1}_last", stride=2, padding="VALID"))
    return layers.joined([*outs, layers.pool(maps, 3, 2, f"{name}/pool")], f"{name}/joined")


def _wide(layers: ImageLayers, maps: Maps, name: str) -> Maps:
    """Branches that end in a row and a column of three beside each other."""
    outs = [layers.conv(maps, 320, 1, f"{name}/branch1")]
    ends: list[_Convolutions] = [[(384, 1)], [(448, 1), (384, 3)]]
    for k, branch in enumerate(ends, 2):
        inner = _branch(layers, maps, branch, f"{name}/branch{k}")
        outs.append(layers.conv(inner, 384, (1, 3), f"{name}/branch{k}_row"))
        outs.append(layers.conv(inner, 384, (3, 1), f"{name}/branch{k}_column"))
    return layers.joined([*outs, _pooled(layers, maps, 192, f"{name}/pool")], f"{name}/joined")
