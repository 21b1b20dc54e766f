"""Splits each deferred node in two: a launch that takes the inputs, and an arrival that has the outputs.

Nodes behind an arrival are in another segment, as if they waited for a message:

    x -> dequeue -> y          becomes          x -> launch          arrival -> y
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...graph.ops.properties import NodeProperties
from ...graph.ops.registry import OpSignature, unlisted
from .columns import OrderedGraph, with_launches
from .roles import Role, roles_of

if TYPE_CHECKING:
    from ...graph.dtypes import DataType
    from .levels import Deferred

_LAUNCH, _ARRIVAL = unlisted("_Launch"), unlisted("_Arrival")


class DeferredEnd(NodeProperties):
    """Properties of the launch or the arrival of a deferred node."""

    __slots__ = ("deferred",)

    def __init__(
        self, op_def: OpSignature, deferred: Deferred, takes: tuple[DataType, ...], gives: tuple[DataType, ...]
    ) -> None:
        super().__init__(op_def, (), takes, gives)
        self.deferred = deferred

    @property
    def op(self) -> str:
        """The op of the node it stands for."""
        return self.deferred.op


def launched(columns: OrderedGraph) -> OrderedGraph:
    """The columns with a launch and an arrival in place of each deferred node."""
    is_deferred = np.array([role is Role.DEFERRED for role in roles_of(columns.kinds)], bool)[columns.kind]
    if not is_deferred.any():
        return columns
    return with_launches(columns, is_deferred, _launch, _arrival)


def _launch(deferred: NodeProperties) -> NodeProperties:
    return DeferredEnd(_LAUNCH, deferred, deferred.input_types, ())  # type: ignore[arg-type]  # they are all `Deferred`


def _arrival(deferred: NodeProperties) -> NodeProperties:
    return DeferredEnd(_ARRIVAL, deferred, (), deferred.output_types)  # type: ignore[arg-type]  # they are all `Deferred`
