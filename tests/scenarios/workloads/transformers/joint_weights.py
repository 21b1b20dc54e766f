"""Weights of queries, keys and values are joint or, with fewer heads of keys than ranks, apart: one as the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from partita.graph.dtypes import Array
from partita.scenarios.workloads.transformers.attention.core import AttentionKind
from partita.scenarios.workloads.transformers.attention.query_key_value import JOINT, apart, joint_columns

Draw = Callable[[str, tuple[int, ...]], Array]
"""the numbers of a weight, by its name and shape"""


def kind_of(model: Any) -> AttentionKind:  # Any: the model of a family
    """The heads of a model; of one with latent attention nobody asks."""
    kv_heads = getattr(model, "kv_heads", model.heads)
    size = getattr(model, "head_size", model.hidden // model.heads)
    return AttentionKind(model.heads, kv_heads, size, size, causal=True)


def drawn(name: str, shape: tuple[int, ...], model: Any, draw: Draw) -> Array:  # Any: the model of a family
    """The numbers of a weight; those of a joint one are drawn apart."""
    if JOINT not in name:
        return draw(name, shape)
    kind = kind_of(model)
    widths = {part: columns.size for part, columns in apart(np.arange(shape[-1]), kind).items()}
    parts = [draw(name.replace(JOINT, part), (*shape[:-1], width)) for part, width in widths.items()]
    return np.concatenate(parts, -1)[..., joint_columns(kind)]


def by_parts(weights: Mapping[str, Array], model: Any) -> dict[str, Array]:  # Any: the model of a family
    """The same weights, or slopes, with joint ones apart."""
    found: dict[str, Array] = {}
    for name, value in weights.items():
        if JOINT in name:
            found |= {name.replace(JOINT, part): each for part, each in apart(value, kind_of(model)).items()}
        else:
            found[name] = value
    return found
