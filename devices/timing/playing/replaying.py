"""What has run as an oracle, and the longest chain of durations of a step, which it gives.

A step that has run is played once more, on hardware that does everything at once. Bodies are those of what ran, so
nothing is asked; loops have as many iterations as they had, calls run what they ran:

    step       While w: cond, body, cond, body, cond         2 iterations
    replayed   the same five bodies in turns, each with the times that its nodes had
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....graph.ops.record import Calls
from .activation import Place, PlayedCall, PlayedLoop, Playing
from .call_run import CallRun
from .model import MAX_PARALLEL_ROWS
from .oracle import LoopTurns
from .player import Player
from .shared_hardware import SharedHardware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...cluster import Cluster
    from ..bodies.body import Body
    from .activation import Activation
    from .oracle import AskedIteration
    from .ran import Ran


def longest_chain_ns(ran: Sequence[Ran], cluster: Cluster) -> int:
    """The time of a step that has run, on hardware that does everything at once."""
    player = Player(SharedHardware(cluster, is_unlimited=True), RecordOracle(ran))
    place = ran[0].activation.place
    player.play_body(ran[0].body, Place(place.graph, place.path))
    return max(player.log.end_ns, default=0)


class RecordOracle:
    """Answers what was; an `oracle.Oracle`."""

    def __init__(self, ran: Sequence[Ran]) -> None:
        """The first activation is that of the step."""
        self._bodies = {each.activation: each.body for each in ran}
        self._first = ran[0].activation
        self._was: dict[Activation, Activation] = {}  # by activation that is played now

    def was(self, activation: Activation) -> Activation:
        """What an activation was when the step ran."""
        if activation not in self._was:
            self._was[activation] = self._found(activation)
        return self._was[activation]

    def _found(self, activation: Activation) -> Activation:
        match activation.run:
            case PlayedLoop() as loop:
                return self._loop(loop.parent, loop.frame).iterations[activation.place.number]
            case ReplayedCall() as call:
                return call.before_run(activation)
        return self._first

    def _loop(self, parent: Activation, frame: int) -> PlayedLoop:
        return self.was(parent).opened[frame]

    def body_of(self, was: Activation) -> Body:
        """The body of what ran."""
        return self._bodies[was]

    def turns(self, parent: Activation, frame: int, *, is_dead: bool) -> LoopTurns:  # it is known
        """As many as there were."""
        return LoopTurns(self._loop(parent, frame).last.place.number, 0, is_uniform=False)

    def body(self, iteration: AskedIteration) -> Body:
        """The body of what ran in that iteration."""
        return self._bodies[self._loop(iteration.parent, iteration.frame).iterations[iteration.number]]

    def call(self, player: Playing, caller: Activation, node: int) -> CallRun:
        """Runs again what a call ran."""
        assert caller.body.gates is not None  # as a node of it calls
        number, was = caller.body.gates.nodes[node], self.was(caller)
        assert was.body.gates is not None
        return ReplayedCall(player, caller, node, was.calls[was.body.gates.local[number]], self)


class ReplayedCall(CallRun):
    """A call that is played again."""

    def __init__(
        self, player: Playing, caller: Activation, node: int, record: PlayedCall, oracle: RecordOracle
    ) -> None:
        super().__init__(player, caller, node, record.kind)
        self._record = record
        self._oracle = oracle
        self._number = self._ended = 0
        self._was: dict[int, Activation] = {}  # by first row

    def before_run(self, activation: Activation) -> Activation:
        """What one of its activations was when the step ran."""
        return self._was[activation.base]

    def begin(self, cause: int) -> None:
        """Begins the first bodies."""
        at_once = MAX_PARALLEL_ROWS if self.kind is Calls.MAP else 1
        for _ in range(min(at_once, len(self._record.runs))):
            self._begin_next(cause)
        if not self._record.runs:
            self.player.call_ended(self.caller, self.node, cause)

    def ended(self, _activation: Activation, cause: int) -> None:
        """A body has ended."""
        self._ended += 1
        if self._number < len(self._record.runs):
            self._begin_next(cause)
        elif self._ended == self._number:
            self.player.call_ended(self.caller, self.node, cause)

    def _begin_next(self, cause: int) -> None:
        was = self._record.runs[self._number]
        self._number += 1
        self._was[self.player.next_row] = was
        place = Place(was.place.graph, self.path, 0, was.place.number)
        self.play(self._oracle.body_of(was), place, cause)
