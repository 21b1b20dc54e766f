"""A call while it is played: the runs of functions that a node has begun, and what their ends release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....graph.ops.record import LOOPS, Calls
from .activation import Activation, Place, PlayedCall, Playing

if TYPE_CHECKING:
    from ..bodies.body import Body


class CallRun(PlayedCall):
    """One run of a node that calls functions; it ends with the last of their nodes."""

    def __init__(self, player: Playing, caller: Activation, node: int, kind: Calls | None) -> None:
        self.player = player
        self.caller = caller
        self.node = node
        self.kind = kind
        self.path = caller.place.path.into(caller.body.graph.names[node])
        self.last = None
        self.before = {}
        self.runs = []
        self.is_loop = kind in LOOPS
        self._gives_results = True

    @property
    def name(self) -> str:
        """The name of the node in the step."""
        return self.caller.place.path.name(self.path.call)

    def begin(self, cause: int) -> None:
        """Begins the first bodies; the entry `cause` released the node."""
        raise NotImplementedError

    def play(self, body: Body, place: Place, cause: int, *, gives_results: bool = True) -> None:
        """Begins a body; without `gives_results` it is the condition of a loop."""
        self._gives_results = gives_results
        self.player.begin(body, place, self, cause)

    def began(self, activation: Activation) -> None:
        """An activation begins, which may end before the player returns."""
        self.before[activation.base] = self.last if self.is_loop else None
        self.runs.append(activation)
        if self._gives_results:
            self.last = activation
