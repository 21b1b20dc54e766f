"""Loops and calls while a step is played: which bodies run next, and what their ends release.

A loop runs as TensorFlow's executor runs it. Every partition that has nodes of the loop has a *window* of its own: the
iterations that it has begun and that are not done. A NextIteration begins the next one, unless `parallel_iterations`
are open; then it waits until the oldest is done. An iteration is done in a partition when all its nodes have ended and
the one before it is done; the loop when all its Enters have run and no iteration is open.

    window with parallel_iterations 2       open 0            open 0, 1           open 1, 2
                                            0 begins          Next of 0: 1 begins 0 is done: 2 begins

A call runs its body and ends with the last node of it. A While calls condition and body in turns, a For its body.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....graph.analysis.frames import is_constant_enter
from ....graph.ops.record import LOOPS, Calls
from ..bodies.choices import entry
from ..bodies.liveness import side
from ..bodies.paths import CallPath
from ..bodies.scripts import check_branch

if TYPE_CHECKING:
    from ..bodies.scripts import Call, Script
    from .player import Activation, Player


_MAX_PARALLEL_CALLS = 64  # rows of a map that are computed at a time


class Turn(NamedTuple):
    """An iteration of a loop that is being played."""

    name: str
    number: int
    loop: LoopRun | CallRun


class Place(NamedTuple):
    """Where an activation is: its script, the path of calls, its turn, the number of its iteration, its loops.

    `loops` are the iterations of all loops around, outermost first.
    """

    script: Script | None = None
    path: CallPath = CallPath()
    turn: int = 0
    number: int = 0
    loops: tuple[Turn, ...] = ()


class Passed(NamedTuple):
    """A node that has passed a token on: its joint number; by a launch (with its ticket), or by its end."""

    node: int
    ticket: int | None
    entry: int


class _Window:
    """The iterations of a loop in one partition."""

    __slots__ = ("constants", "latest", "missing", "open", "waiting")

    def __init__(self, missing: int) -> None:
        self.latest = 0
        self.open: set[int] = {0}
        self.missing = missing  # Enters that have not run
        self.constants: list[Passed] = []  # Enters whose values every iteration gets
        self.waiting: list[Passed] = []  # NextIterations of the latest iteration


class LoopRun:
    """One activation of a loop, begun by the first of its Enters."""

    def __init__(self, player: Player, parent: Activation, frame: int) -> None:
        script = parent.place.script
        assert script is not None  # as it has a loop
        assert script.levels is not None
        assert parent.body.gates is not None
        self.player = player
        self.parent = parent
        self.frame = frame
        self.script = script
        self.levels = script.levels
        self.description = self.levels.frames.all[frame]
        self.tokens = self.levels.tokens
        self.graph = self.levels.graph
        local = parent.body.gates.local
        enters = self.description.enters
        self.dead = frozenset(enter for enter in enters if local[enter] < 0)
        self._enters = [enter for enter in enters if local[enter] >= 0]
        # In the iteration of a loop around that only finds its end, nothing but constants enters: no turn of this loop.
        is_dead = all(is_constant_enter(self.graph.properties[enter]) for enter in self._enters)
        self.count = 0 if is_dead else script.count(frame, parent.place.turn)
        self.first_turn = 0 if is_dead else script.first_turn(frame, parent.place.turn)
        self.iterations: dict[int, Activation] = {}
        self.windows: dict[int, _Window] = {}
        self._first_place = -1

    # Tokens

    def entered(self, place: int, passed: Passed) -> None:
        """An Enter has run, or its kernel has been launched."""
        window = self.windows.get(place)
        if window is None:
            window = self.windows[place] = self._open(place)
        if passed.ticket is None:
            window.missing -= 1
        if is_constant_enter(self.graph.properties[passed.node]):
            window.constants.append(passed)
            for number in range(window.latest + 1):
                if number in window.open:
                    self._deliver(number, passed)
        else:
            self._deliver(0, passed)
        self.retire(place, 0, passed.entry)

    def _open(self, place: int) -> _Window:
        """The loop begins in a partition."""
        self.player.hold(self.parent, place)
        if self._first_place < 0:
            self._first_place = place
        return _Window(sum(int(self.graph.place[enter]) == place for enter in self._enters))

    def next(self, activation: Activation, place: int, passed: Passed) -> None:
        """A NextIteration has run, or has been launched."""
        if not self._consumers(passed):
            return
        window, number = self.windows[place], activation.place.number
        if number < window.latest:
            self._deliver(number + 1, passed)
        elif len(window.open) >= self.description.parallel_iterations:
            window.waiting.append(passed)
        else:
            self._begin(window, place, passed.entry)
            self._deliver(number + 1, passed)

    def _begin(self, window: _Window, place: int, entry: int) -> None:
        window.latest += 1
        window.open.add(window.latest)
        for constant in window.constants:
            self._deliver(window.latest, constant._replace(entry=entry))
        if self.script.is_uniform and place == self._first_place:
            self.player.folding.begun.append((self, window.latest))

    def shorten(self, iterations: int) -> None:
        """The loop ends so many iterations earlier."""
        self.count -= iterations

    def state(self, number: int) -> Hashable:
        """What decides how the loop goes on, with iterations counted from `number`."""
        return tuple(
            (
                place,
                window.latest - number,
                tuple(sorted(i - number for i in window.open)),
                window.missing,
                tuple((passed.node, passed.ticket is None) for passed in window.waiting),
            )
            for place, window in self.windows.items()
        )

    def exited(self, passed: Passed) -> None:
        """An Exit has run, or has been launched."""
        self.player.deliver(self.parent, self._consumers(passed), passed)

    def _consumers(self, passed: Passed) -> Sequence[int]:
        return self.tokens[passed.ticket is not None].get(passed.node, ())

    def _deliver(self, number: int, passed: Passed) -> None:
        self.player.deliver(self._iteration(number), self._consumers(passed), passed)

    def _iteration(self, number: int) -> Activation:
        """The activation of an iteration."""
        activation = self.iterations.get(number)
        if activation is None:
            turn = self.first_turn + number
            body = self.script.iteration(self.frame, number, self.count, turn, self.dead)
            loops = (
                *self.parent.place.loops,
                Turn(self.parent.place.path.name(self.description.name), number, self),
            )
            place = Place(self.script, self.parent.place.path, turn, number, loops)
            activation = self.iterations[number] = self.player.begin(body, place, self, -1)
        return activation

    # Ends

    def retire(self, place: int, number: int, entry: int) -> None:
        """Closes an iteration in a partition if it is done, and those after it that are, then the loop.

        The entry `entry` of the log is what may have ended it.
        """
        window = self.windows[place]
        while number in window.open and self._is_done(window, place, number):
            window.open.remove(number)
            if window.waiting:
                waiting, window.waiting = window.waiting, []
                self._begin(window, place, entry)
                for passed in waiting:
                    self._deliver(window.latest, passed._replace(entry=entry))
            number += 1
        if not window.open and not window.missing:
            del self.windows[place]
            self.player.left(self.parent, place, entry)

    def _is_done(self, window: _Window, place: int, number: int) -> bool:
        activation = self.iterations.get(number)
        if activation is not None and activation.left_in is not None and activation.left_in.get(place):
            return False
        return not window.missing if number == 0 else number - 1 not in window.open


class CallRun:
    """One run of a node that calls functions."""

    def __init__(self, player: Player, caller: Activation, node: int, call: Call) -> None:
        self.player = player
        self.caller = caller
        self.node = node
        self.call = call
        self.path = caller.place.path.into(caller.body.graph.names[node])
        self.last: Activation | None = None  # whose results are those of the call so far
        self.before: dict[int, Activation | None] = {}  # by row: the activation whose results are its arguments
        self.is_loop = call.kind in LOOPS
        self.per_turn = 2 if call.kind is Calls.WHILE else 1
        self.number = 0  # steps begun: of a While, conditions and bodies in turns; of a map, rows
        self.running = 0
        self.steps = 1
        self.count = 1
        if self.is_loop:
            self.count = entry(call.count, caller.place.turn, "--trips", self.name)
            self.steps = self.per_turn * self.count + (call.kind is Calls.WHILE)
            self.first_turn = self._first_turn()
            self.is_uniform = self.call.is_uniform
        elif call.kind is Calls.MAP:
            self.steps = entry(call.count, caller.place.turn, "--trips", self.name)

    @property
    def name(self) -> str:
        """The name of the node in the step."""
        return self.caller.place.path.name(self.path.call)

    def begin(self, cause: int) -> None:
        """Begins the first bodies; the entry `cause` released the node."""
        at_once = _MAX_PARALLEL_CALLS if self.call.kind is Calls.MAP else 1
        for _ in range(min(at_once, self.steps)):
            self._begin_next(cause)
        if not self.steps:
            self.player.call_ended(self.caller, self.node, cause)

    def ended(self, cause: int) -> None:
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
            if step % self.per_turn == 0 and self.is_uniform:
                self.player.folding.begun.append((self, iteration))
            # The last condition and body are those of all further iterations.
            beyond = step - len(scripts)
            index = step if beyond < 0 else len(scripts) - self.per_turn + beyond % self.per_turn
            script = scripts[index if len(scripts) > 1 else 0]
            turn, number, loops = self.first_turn + iteration, iteration, (*loops, Turn(self.name, iteration, self))
        elif self.call.kind is Calls.MAP:
            script = scripts[0]
            turn, number, loops = turn * self.steps + step, step, (*loops, Turn(self.name, step, self))
        elif self.call.kind in (Calls.IF, Calls.CASE):
            if not loops or number < loops[-1].loop.count:
                check_branch(self.call.answer, turn, caller.place.path, self.path.call)
            script = scripts[side(self.call.answer, turn, number) or 0]
        else:
            script = scripts[0]
        assert script is not None  # the planner has those that may be taken
        place = Place(script, self.path, turn, number, loops)
        self.before[self.player.next_row] = self.last if self.is_loop else None
        is_last = self.call.kind is Calls.WHILE and step == self.steps - 1
        activation = self.player.begin(script.root(turn, number, is_last=is_last), place, self, cause)
        if self.call.kind is not Calls.WHILE or step % 2:
            self.last = activation

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
