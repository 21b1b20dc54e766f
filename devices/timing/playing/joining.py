"""Members of collectives join in the name of the nodes of an activation, and what is said where some never come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ..hardware.collectives import Member

if TYPE_CHECKING:
    from ..bodies.body import SeatedNode
    from .activation import Activation
    from .player import Player

_LISTED = 8


def join(player: Player, activation: Activation, node: int, seated: SeatedNode, cause: int) -> None:
    """A node is ready and joins its collective; InvalidArgumentError, naming the node, if it does not belong there."""
    iterations = tuple([turn.number for turn in activation.place.loops])
    member = Member(activation.base + node, int(activation.body.device[node]), seated.size_bytes, cause)
    try:
        player.engine.collectives.join(player, seated.seat, iterations, member)
    except InvalidArgumentError as error:
        graph = activation.body.graph
        raise error.located(node=activation.prefix + graph.names[node], op=graph.op(node)) from None


def missing_members(player: Player) -> list[str]:
    """A sentence for each collective that waits: who came, and how many did not."""
    sentences = []
    for meeting in player.engine.collectives.waiting():
        owners = [(player.owner(member.row), member.row) for member in meeting.members]
        names = [repr(each.prefix + each.body.graph.names[row - each.base]) for each, row in owners]
        came = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
        absent = meeting.seat.size - len(names)
        sentences.append(f"{meeting.seat}: {absent} of {meeting.seat.size} members never come; {came} waits")
    return sentences
