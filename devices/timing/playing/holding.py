"""The memory of a played step: the tensors of its bodies, once per body, and the times of its rows."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from ..memory.buffers import buffers_of
from ..memory.kinds import address_spaces
from ..memory.runs import Run, tensors_of_runs
from ..memory.tensors import Tensors, tensors_of
from ..memory.use import MemoryUse, limits_of
from .recording import times_of

if TYPE_CHECKING:
    from ...cluster import Cluster
    from ..bodies.body import Body
    from .player import Player


def memory_of(player: Player, cluster: Cluster) -> MemoryUse:
    """The memory that a step needs; its devices are those of the cluster."""
    activations = player.activations
    bodies = {id(activation.body): activation.body for activation in activations}
    of_body = {key: _tensors(body, cluster) for key, body in bodies.items()}
    tensors = tensors_of_runs([Run(of_body[id(activation.body)], activation.base) for activation in activations])
    times = times_of(player.log, len(tensors.first))
    buffers = buffers_of(tensors, times, np.array(address_spaces(cluster.devices)))
    bases = [activation.base for activation in activations]

    def name_of(row: int) -> tuple[str, str]:
        activation = activations[bisect_right(bases, row) - 1]
        return activation.prefix + activation.body.graph.names[row - activation.base], activation.iteration

    return MemoryUse(tensors, buffers, cluster.names, limits_of(cluster), name_of)


def _tensors(body: Body, cluster: Cluster) -> Tensors:
    is_copied = np.zeros(len(body), np.bool_)
    is_copied[list(body.routes)] = True
    return tensors_of(body.shapes, cluster.devices, body.device, is_copied)
