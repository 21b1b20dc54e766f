"""Computes constant nodes for constant folding, at once and on a CPU whose state nothing else uses.

product = Mul(2, 3), both constants      can_run(Mul) is True, run(graph, ["product:0"]) is [array(6)]
ReadFile, Placeholder                    can_run is False
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...devices.kernels.registry import is_deferred, lookup
from ...graph.ops.device_kinds import CPU
from ..plans.roles import Role, role_of
from .graph_runner import GraphRunner

if TYPE_CHECKING:
    from ...graph.dtypes import Array
    from ...graph.graph import Graph
    from ...graph.ops.properties import NodeProperties

_ROLES = frozenset({Role.COMPUTE, Role.CONST, Role.ALIAS, Role.NOTHING})


class ConstantEvaluator:
    """Implements `graph.passes.optimising.constant_folding.Evaluator`."""

    def can_run(self, properties: NodeProperties) -> bool:
        """Whether nodes with these properties have a kernel that needs only its inputs, and no step, file or feed."""
        op, role = properties.op, role_of(properties.op)
        if role is not Role.COMPUTE:
            return role in _ROLES
        record = properties.op_def.record
        if record.must_be_fed or record.waits_for_files or is_deferred(op):
            return False
        return lookup(op, CPU.name) is not None

    def run(self, graph: Graph, fetches: Sequence[str]) -> list[Array]:
        """The values of the fetches, in their order; raises the error of a node that fails."""
        return GraphRunner().run(graph, None, fetches)
