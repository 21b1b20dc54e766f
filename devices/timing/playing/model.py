"""The model of a step as an oracle: scripts know all counts and branches, and every body has its times.

A While calls condition and body in turns, a For its body. The rows of a map run side by side, so many at a time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ....graph.ops.record import Calls
from ..bodies.choices import entry
from ..bodies.liveness import side
from ..bodies.scripts import Script, check_branch
from .activation import Activation, LoopTurn, Place, Playing
from .call_run import CallRun
from .oracle import AskedIteration, LoopTurns

if TYPE_CHECKING:
    from ..bodies.body import Body
    from ..bodies.scripts import Call

MAX_PARALLEL_ROWS = 64
"""rows of a map that are computed at a time"""


class ModelOracle:
    """Answers by the scripts of the graphs that are played; an `oracle.Oracle`."""

    def turns(self, parent: Activation, frame: int, *, is_dead: bool) -> LoopTurns:
        """As the script of the graph counts."""
        script, turn = _script(parent), parent.place.turn
        if is_dead:
            return LoopTurns(0, 0, script.is_uniform)
        return LoopTurns(script.count(frame, turn), script.first_turn(frame, turn), script.is_uniform)

    def body(self, iteration: AskedIteration) -> Body:
        """The variant for the branches of that iteration."""
        parent, frame, number, turn, count, dead = iteration
        assert count is not None  # `turns` has counted
        return _script(parent).iteration(frame, number, count, turn, dead)

    def call(self, player: Playing, caller: Activation, node: int) -> CallRun:
        """What the script of the graph has planned for a call."""
        assert caller.body.gates is not None  # as a node of it calls
        return ModelCall(player, caller, node, _script(caller).calls[caller.body.gates.nodes[node]])


def _script(activation: Activation) -> Script:
    script = activation.place.graph
    assert isinstance(script, Script)  # `Player.play` begins with one
    return script


class ModelCall(CallRun):
    """A call whose counts and branches are known."""

    def __init__(self, player: Playing, caller: Activation, node: int, call: Call) -> None:
        super().__init__(player, caller, node, call.kind)
        self.call = call
        self.per_turn = 2 if call.kind is Calls.WHILE else 1
        self.number = 0  # steps begun: of a While, conditions and bodies in turns; of a map, rows
        self.running = 0
        self.steps = 1
        self.count: int = 1
        if self.is_loop:
            self.count = entry(call.count, caller.place.turn, "--trips", self.name)
            self.steps = self.per_turn * self.count + (call.kind is Calls.WHILE)
            self.first_turn = self._first_turn()
        elif call.kind is Calls.MAP:
            self.steps = entry(call.count, caller.place.turn, "--trips", self.name)

    def begin(self, cause: int) -> None:
        """Begins the first bodies."""
        at_once = MAX_PARALLEL_ROWS if self.call.kind is Calls.MAP else 1
        for _ in range(min(at_once, self.steps)):
            self._begin_next(cause)
        if not self.steps:
            self.player.call_ended(self.caller, self.node, cause)

    def ended(self, _activation: Activation, cause: int) -> None:
        """A body has ended, with the entry `cause`."""
        self.running -= 1
        if self.number < self.steps:
            self._begin_next(cause)
        elif not self.running:
            self.player.call_ended(self.caller, self.node, cause)

    def _begin_next(self, cause: int) -> None:
        step, caller, scripts = self.number, self.caller, self.call.scripts
        self.number += 1
        self.running += 1
        _, _, turn, number, loops = caller.place
        if self.is_loop:
            iteration = step // self.per_turn
            if step % self.per_turn == 0 and self.call.is_uniform:
                self.latest = iteration
                self.player.begun(self)
            # The last condition and body are those of all further iterations.
            beyond = step - len(scripts)
            index = step if beyond < 0 else len(scripts) - self.per_turn + beyond % self.per_turn
            script = scripts[index if len(scripts) > 1 else 0]
            turn, number, loops = self.first_turn + iteration, iteration, (*loops, LoopTurn(self.name, iteration, self))
        elif self.call.kind is Calls.MAP:
            script = scripts[0]
            turn, number, loops = turn * self.steps + step, step, (*loops, LoopTurn(self.name, step, self))
        elif self.call.kind in (Calls.IF, Calls.CASE):
            count = loops[-1].loop.count if loops else None
            if count is None or number < count:
                check_branch(self.call.answer, turn, caller.place.path, self.path.call)
            script = scripts[side(self.call.answer, turn, number) or 0]
        else:
            script = scripts[0]
        assert script is not None  # the planner has those that may be taken
        is_condition = self.call.kind is Calls.WHILE and step % 2 == 0
        body = script.root(turn, number, is_last=is_condition and step == self.steps - 1)
        self.play(body, Place(script, self.path, turn, number, loops), cause, gives_results=not is_condition)

    def counted_number(self, argument: int) -> int:
        """What a plain call gives as a constant."""
        return self.call.numbers[argument]

    def shorten(self, iterations: int) -> None:
        """The loop ends so many iterations earlier."""
        self.count -= iterations
        self.steps -= self.per_turn * iterations

    def state(self, number: int) -> Hashable:
        """What decides how the call goes on, with iterations counted from `number`."""
        return self.number - self.per_turn * number, self.running

    def _first_turn(self) -> int:
        count, turn = self.call.count, self.caller.place.turn
        return turn * count if isinstance(count, int) else sum(count[:turn])
