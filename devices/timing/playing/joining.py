"""Members of collectives join in the name of the nodes of an activation, and what is said where some never come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ..hardware.collectives import MemberRow

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..bodies.body import SeatedNode
    from ..hardware.engine import Engine
    from .activation import Activation

_LISTED = 8


def join(engine: Engine, step: Hashable, activation: Activation, node: int, seated: SeatedNode, cause: int) -> None:
    """A node is ready and joins its collective; InvalidArgumentError, naming the node, if it does not belong there.

    `step` tells the nodes of one step from those of others.
    """
    iterations = tuple([turn.number for turn in activation.place.loops])
    member = MemberRow(activation.base + node, int(activation.body.device[node]), seated.size_bytes, cause)
    seat = seated.seat
    if seat.argument >= 0:
        assert activation.run is not None  # as it is that of a function
        assert seat.instance is not None
        seat = replace(seat, instance=seat.instance + activation.run.counted_number(seat.argument), argument=-1)
    try:
        engine.collectives.join(step, seat, iterations, member)
    except InvalidArgumentError as error:
        graph = activation.body.graph
        raise error.located(node=activation.prefix + graph.names[node], op=graph.op(node)) from None


def missing_members(engine: Engine, owner: Callable[[int], Activation]) -> list[str]:
    """A sentence for each collective that waits: who came, and how many did not. `owner` finds whose a row is."""
    sentences = []
    for meeting in engine.collectives.waiting():
        owners = [(owner(member.row), member.row) for member in meeting.members]
        names = [repr(each.prefix + each.body.graph.names[row - each.base]) for each, row in owners]
        came = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        absent = meeting.seat.size - len(names)
        sentences.append(f"{meeting.seat}: {absent} of {meeting.seat.size} members never come; {came} waits")
    return sentences
