"""The orders that the caller of a simulation may choose, and what is said of one that is none.

"ready"            as they become ready; the default
"critical-path"    what has the longest way to the end of the step first, see `critical_path`
{"loss": 2}        the highest priority first; a node that is not named has that of the call around it, or 0
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Literal, get_args

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion

NamedOrder = Literal["ready", "critical-path"]
"""an order that needs nothing but its name"""
NAMED_ORDERS: tuple[NamedOrder, ...] = get_args(NamedOrder)
Order = NamedOrder | Mapping[str, float]
"""a named order, or priorities by the names that nodes have in the timeline"""


def checked_order(order: object) -> Order:
    """The order that a caller gives; InvalidArgumentError for what is none."""
    if isinstance(order, str):
        for known in NAMED_ORDERS:
            if order == known:
                return known
        raise InvalidArgumentError(f"order {order!r}: there is none of that name{suggestion(order, NAMED_ORDERS)}")
    if not isinstance(order, Mapping):
        names = " or ".join(repr(name) for name in NAMED_ORDERS)
        raise InvalidArgumentError(f"order {order!r}: give {names}, or a mapping from names of nodes to priorities")
    return {_name(name): _priority(name, priority) for name, priority in order.items()}


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidArgumentError(f"order: the name {name!r} is not a text; a priority belongs to the name of a node")
    return name


def _priority(name: object, priority: object) -> float:
    if isinstance(priority, bool) or not isinstance(priority, Real) or not isfinite(priority):
        raise InvalidArgumentError(
            f"order: the priority {priority!r} of {name!r} is no finite number; give one, the highest is first"
        )
    return float(priority)
