"""Evaluates graphs of constants, for constant folding.

Flows in: a graph without feeds. Flows out: arrays. Always holds: it runs at once, to the end, in the caller's task, on
a CPU of its own whose state nothing else sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..devices.kernels.registry import is_deferred, is_waiting_for_files, lookup
from ..devices.state import DeviceState
from ..graph.subgraph import client_graph
from .binding import PLACEHOLDERS, Binder
from .reference import run_reference
from .roles import Role, role_of

if TYPE_CHECKING:
    from ..graph.dtypes import Array
    from ..graph.graph import Graph
    from ..graph.properties import NodeProperties

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_SEED = 0  # nothing that is random is ever evaluated here
_ROLES = frozenset({Role.COMPUTE, Role.CONST, Role.ALIAS, Role.NOTHING})


class ConstantEvaluator:
    """See `graph.passes.constant_folding.Evaluator`."""

    def can_run(self, properties: NodeProperties) -> bool:
        """Whether nodes like this have a kernel that needs nothing but its inputs."""
        op, role = properties.op, role_of(properties.op)
        if role is not Role.COMPUTE:
            return role in _ROLES
        return op not in PLACEHOLDERS and lookup(op) is not None and not (is_deferred(op) or is_waiting_for_files(op))

    def run(self, graph: Graph, fetches: Sequence[str]) -> list[Array]:
        """The values of tensors, in the order asked; raises the error of a node that fails."""
        binder = Binder(_DEVICE, DeviceState(_SEED))
        requested = client_graph(graph, (), fetches, (), _DEVICE)
        requested.assign_devices(np.full(requested.num_node_ids, requested.intern_device(_DEVICE)))
        values = run_reference([requested], {_DEVICE: binder}, (), len(fetches))
        return [np.asarray(value) for value in values]
