"""The body of a function that runs as a whole on the device of its caller: what a plan may take in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ....devices.kernels.registry import is_deferred
from ...plans.levels import Levels, levels_of

if TYPE_CHECKING:
    from ....graph.functions.body import FunctionBody
    from ....graph.graph import Graph
    from ....graph.ops.properties import NodeProperties
    from ...plans.binding import Binder


class WholeBody(NamedTuple):
    """A function, its placed nodes in levels, and what makes their kernels."""

    body: FunctionBody
    levels: Levels
    binder: Binder


def whole_body(body: FunctionBody, placed: Graph, binder: Binder) -> WholeBody:
    """The body whose only partition is `placed`. Raises Unfoldable, and what `columns_of` raises."""
    return WholeBody(body, levels_of(placed, _waits), binder)


def _waits(kind: NodeProperties) -> bool:
    """Whether the kernel of a node waits for something; calls are looked at when they are taken in."""
    return is_deferred(kind.op_def.name)
