"""The memory of a played step: its tensors, and the times of its rows."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from ..memory.buffers import buffers_of
from ..memory.kinds import address_spaces
from ..memory.tensors import tensors_of
from ..memory.use import MemoryUse, limits_of
from .blocks import offsets_of
from .played_graph import played_shapes
from .recording import times_of

if TYPE_CHECKING:
    from ...cluster import Cluster
    from .player import Player


def memory_of(player: Player, cluster: Cluster) -> MemoryUse:
    """The memory that a step needs; its devices are those of the cluster."""
    activations = player.activations
    bodies = [activation.body for activation in activations]
    is_plain = len(bodies) == 1 and bodies[0].gates is None
    shapes = bodies[0].shapes if is_plain else played_shapes(activations)
    is_copied = np.zeros(player.next_row, np.bool_)
    is_copied[[activation.base + n for activation in activations for n in activation.body.routes]] = True
    tensors = tensors_of(shapes, cluster.devices, np.concatenate([body.device for body in bodies]), is_copied)
    buffers = buffers_of(
        tensors,
        times_of(player.log, player.next_row, offsets_of(player.folding.segments, len(player.log))),
        np.array(address_spaces(cluster.devices)),
    )
    bases = [activation.base for activation in activations]

    def name_of(row: int) -> tuple[str, str]:
        activation = activations[bisect_right(bases, row) - 1]
        return activation.prefix + activation.body.graph.names[row - activation.base], activation.iteration

    return MemoryUse(tensors, buffers, cluster.names, limits_of(cluster), name_of)
