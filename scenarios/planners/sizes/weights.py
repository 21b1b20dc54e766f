"""The weights of a rank in columns: of a layer of each kind, and of the pipeline rank that has most of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....graph.arrays import Floats
from ..configurations import Configurations
from ..step import PlannedStep
from .parameters import rank_parameters
from .shapes import LayerShapes
from .shares import RankShares, ShardCounts, shards_of


class LayerWeights(NamedTuple):
    """Elements of a layer by row: those that all dp ranks have, and those of routed experts."""

    whole: Floats
    routed: Floats


class RankWeights(NamedTuple):
    """By row; `whole` and `routed` are of the pipeline rank with most of both."""

    of_layers: Mapping[str, LayerWeights]
    whole: Floats
    routed: Floats
    tied: Floats
    """an embedding that the last stage has once more"""
    shards: ShardCounts
    """over how many ranks the optimizer's state is spread, where it is"""


def rank_weights(step: PlannedStep, of: Configurations, layers: Mapping[str, NDArray[np.int64]]) -> RankWeights:
    """The weights of each row; `layers` has by kind how many of them each kind of pipeline rank has [rows, ranks]."""
    shapes = LayerShapes.of(step.model)
    shares = RankShares.of(step, shapes, of)
    it, nothing = rank_parameters(shapes, shares, of), np.zeros(len(of))
    last = it.vocabulary * np.where(shapes.tied & (of.pp == 1), 0.0, 1.0) + it.last_norm
    of_layers = {
        "embedding": LayerWeights(it.embedding, nothing),
        "dense": LayerWeights(it.attention + it.dense, nothing),
        "experts": LayerWeights(it.attention + it.beside_routed, it.routed + nothing),
        "head": LayerWeights(last, nothing),
    }
    whole, routed = (
        sum((each[part][:, None] * layers[kind] for kind, each in of_layers.items()), np.zeros(layers["head"].shape))
        for part in (0, 1)
    )
    most = np.argmax(whole + routed, axis=1)[:, None]
    return RankWeights(
        of_layers,
        np.take_along_axis(whole, most, axis=1)[:, 0],
        np.take_along_axis(routed, most, axis=1)[:, 0],
        np.where(shapes.tied & (of.pp > 1), it.vocabulary, 0.0),
        shards_of(shares, of),
    )
