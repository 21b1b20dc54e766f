"""The layers of each pipeline rank, by kind: of equal stages, unequal ones, and with the embedding and the head.

    stage_kinds(model of 10 layers, pp=4, interleave=1)
        embedding  1 0 0 0
        dense      2 3 3 2        layers that do not divide are cut as even as can be, more in the middle
        head       0 0 0 1
    -> three kinds of ranks, with how many there are of each

Stage k of pp * interleave is on the rank k modulo pp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Numbers
from ...models.description import ModelDescription
from ...models.stage_cut import even_stages
from .shapes import LayerShapes

LAYER_KINDS = ("embedding", "dense", "experts", "head")


class StageKinds(NamedTuple):
    """Kinds of pipeline ranks: layers by kind, how many ranks are alike, and the first of them."""

    layers: Mapping[str, Numbers]
    ranks: Numbers
    first: Numbers


def stage_kinds(model: ModelDescription, pp: int, interleave: int, stages: Sequence[int] | None = None) -> StageKinds:
    """The kinds of ranks of a pipeline; `stages` are the layers of each stage where they are given."""
    counts = np.array(stages or even_stages(model.layers, pp * interleave), dtype=np.int64)
    dense = LayerShapes.of(model).dense_layers
    below = np.concatenate([[0], np.cumsum(counts)])
    of_dense = np.diff(np.minimum(below, dense))
    of_stages = np.zeros((len(LAYER_KINDS), len(counts)), dtype=np.int64)
    of_stages[0, 0] = of_stages[3, -1] = 1
    of_stages[1], of_stages[2] = of_dense, counts - of_dense
    of_ranks = of_stages.reshape(len(LAYER_KINDS), -1, pp).sum(axis=1)
    kinds, first, count = np.unique(of_ranks, axis=1, return_index=True, return_counts=True)
    return StageKinds(dict(zip(LAYER_KINDS, kinds, strict=True)), count, first)
