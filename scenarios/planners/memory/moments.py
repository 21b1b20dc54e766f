"""The times of a step at which a rank may need most, and what it has beside states and waiting activations then.

    the head        logits with their gradient, and the gradient of what it reads, of all rows and scattered over tp
    a layer         the gradients inside it, and what it computes again; with experts the ways out and back
    the embedding   a dense gradient of its rows, when the backward pass of a micro-batch is over
    the optimizer   16-bit gradients cast to float32, no activations

Beside all of them from the first backward pass on: a buffer for the gradient of each shape of weight (products add to
float32 gradients at once, what autograd is given instead is a 16-bit tensor of the weight's shape that is kept, as
Megatron-LM with TransformerEngine does), workspaces of products, the tables of rotary positions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....graph.arrays import Flags, Floats
from ..configurations import RECOMPUTATIONS, Configurations
from ..sizes.parameters import ParameterCounts
from ..sizes.shapes import LayerShapes
from ..sizes.shares import RankShares
from ..step import PlannedStep
from .kept import LayerKept, scores

_WORKSPACE_BYTES = 2**25
"""of a cuBLAS handle on Hopper and later"""
_WORKSPACES = 2
"""PyTorch's, and TransformerEngine's"""
_GROUPED_WORKSPACES = 4
"""the streams that TransformerEngine's grouped products run on"""
_SORTED_COPIES = 3
"""of the rows of experts while they come back: sorted, made by experts, in order for the way; one more if exchanged"""


class LayerMoments(NamedTuple):
    """What is live beside waiting activations while a layer runs, forward or backward."""

    dense: Floats
    experts: Floats


def layer_times(
    step: PlannedStep,
    shapes: LayerShapes,
    shares: RankShares,
    configurations: Configurations,
    kept: tuple[LayerKept, LayerKept],
) -> LayerMoments:
    """Of a dense layer and one with experts."""
    between = shares.rows * shapes.hidden * shares.width
    units = shares.tokens * shapes.units / shares.tp * shares.width
    dense = units * (2 if shapes.is_gated else 1) + between
    exchanged = configurations.ep > 1
    ways = (_SORTED_COPIES + exchanged) * shares.expert_rows * shapes.hidden * shares.width + between
    return LayerMoments(
        _layer(step, shares, configurations, kept[0], dense), _layer(step, shares, configurations, kept[1], ways)
    )


def _layer(
    step: PlannedStep, shares: RankShares, configurations: Configurations, kept: LayerKept, feed_forward: Floats
) -> Floats:
    """The larger of the feed-forward part and attention; when attention's gradients come the other part is freed."""
    attention, mlp = kept.attention, kept.feed_forward
    gradients = attention.heads + attention.mixed + (0 if step.fused_attention else 2 * scores(shares) * shares.width)
    if not step.trains:
        inside = attention.heads + attention.core + attention.mixed
        return np.asarray(attention.entry + attention.normed + np.maximum(inside, mlp.products + mlp.others))
    freed = mlp.entry + mlp.normed + mlp.products + mlp.others + mlp.mask
    left = kept.by_recomputation(configurations)
    is_selective = configurations.recompute == RECOMPUTATIONS.index("selective")
    again = kept.all - left
    before = np.where(is_selective, feed_forward, feed_forward + again)
    return np.asarray(np.maximum(before, gradients + again - freed))


def head_time(step: PlannedStep, shapes: LayerShapes, shares: RankShares, parameters: ParameterCounts) -> Floats:
    """Logits and gradients of the head and its norm."""
    logits = shares.tokens * parameters.vocabulary / shapes.hidden
    between, whole = (rows * shapes.hidden * shares.width for rows in (shares.rows, shares.tokens))
    scattered = np.where(shares.rows < shares.tokens, between, 0)
    if not step.trains:
        return np.asarray(logits * shares.width + between)
    each = shares.width if step.fused_loss else shares.width + 4
    return np.asarray(logits * each + whole + scattered)


def gathered(shapes: LayerShapes, shares: RankShares, configurations: Configurations) -> Floats:
    """Buffers of communication: rows gathered over tp, and what a stage sends."""
    between, whole = (rows * shapes.hidden * shares.width for rows in (shares.rows, shares.tokens))
    return np.asarray(np.where(shares.rows < shares.tokens, whole, 0) + np.where(configurations.pp > 1, between, 0))


def always(step: PlannedStep, shapes: LayerShapes, has_experts: Flags) -> Floats:
    """Workspaces and tables of a rank."""
    tables = 4.0 * step.sequence_length * shapes.turned_size
    return np.asarray(_WORKSPACE_BYTES * (_WORKSPACES + _GROUPED_WORKSPACES * has_experts) + tables)


class WeightBuffers(NamedTuple):
    """Bytes of one buffer for each shape of weight: of kinds of layers that a rank has, and of the head."""

    dense: Floats
    experts: Floats
    attention: Floats
    head: Floats


def weight_buffers(step: PlannedStep, shares: RankShares, parameters: ParameterCounts) -> WeightBuffers:
    """Nothing without training."""
    width = shares.width if step.trains else 0
    return WeightBuffers(
        dense=parameters.dense * width,
        experts=(parameters.beside_routed + parameters.one_expert) * width,
        attention=parameters.attention * width,
        head=parameters.vocabulary * width,
    )
