"""A loop while it is played: which iterations run, and what their ends release.

A loop runs as TensorFlow's executor runs it. Every partition that has nodes of the loop has a *window* of its own: the
iterations that it has begun and that are not done. A NextIteration begins the next one, unless `parallel_iterations`
are open; then it waits until the oldest is done. An iteration is done in a partition when all its nodes have ended and
the one before it is done; the loop when all its Enters have run and no iteration is open.

    window with parallel_iterations 2       open 0            open 0, 1           open 1, 2
                                            0 begins          Next of 0: 1 begins 0 is done: 2 begins

A dead NextIteration begins nothing. A dead Exit of the last iteration is passed on when the loop is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from ....graph.analysis.levels import is_constant_enter
from .activation import Activation, LoopTurn, Passed, Place, PlayedLoop, Playing
from .oracle import AskedIteration

if TYPE_CHECKING:
    from ..bodies.levels import TokenTarget
    from .oracle import Oracle


class _Window:
    """The iterations of a loop in one partition."""

    __slots__ = ("constants", "dead_exits", "latest", "missing", "open", "waiting")

    def __init__(self, missing: int) -> None:
        self.latest = 0
        self.open: set[int] = {0}
        self.missing = missing  # Enters that have not run
        self.constants: list[Passed] = []  # Enters whose values every iteration gets
        self.waiting: list[Passed] = []  # NextIterations of the latest iteration
        self.dead_exits: list[Passed] = []  # of the latest iteration


class LoopRun(PlayedLoop):
    """One activation of a loop, begun by the first of its Enters."""

    def __init__(self, player: Playing, oracle: Oracle, parent: Activation, frame: int) -> None:
        levels = parent.place.graph.levels
        assert levels is not None  # as it has a loop
        assert parent.body.gates is not None
        self.player = player
        self.parent = parent
        self.frame = frame
        self.description = levels.frames.all[frame]
        self.tokens = levels.tokens
        self.graph = levels.graph
        self.iterations = {}
        self.windows: dict[int, _Window] = {}
        local, enters = parent.body.gates.local, self.description.enters
        self.dead = frozenset(enter for enter in enters if local[enter] < 0)
        self._enters = [enter for enter in enters if local[enter] >= 0]
        # In the iteration of a loop around that only finds its end, nothing but constants enters: no turn of this loop.
        is_dead = all(is_constant_enter(self.graph.properties[enter]) for enter in self._enters)
        self.overlaps = self.description.parallel_iterations > 1
        self._oracle = oracle
        self.count, self.first_turn, self._is_uniform = oracle.turns(parent, frame, is_dead=is_dead)
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
        if passed.is_dead or not self._consumers(passed):
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
        window.dead_exits.clear()
        for constant in window.constants:
            self._deliver(window.latest, constant._replace(entry=entry))
        if self._is_uniform and place == self._first_place:
            self.player.begun(self)

    def shorten(self, iterations: int) -> None:
        """The loop ends so many iterations earlier."""
        assert self.count is not None  # only a loop that runs alike is shortened
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

    def exited(self, activation: Activation, place: int, passed: Passed) -> None:
        """An Exit has run, or has been launched."""
        if passed.is_dead:
            window = self.windows[place]
            if activation.place.number == window.latest:
                window.dead_exits.append(passed)
            return
        self.player.deliver(self.parent, self._consumers(passed), passed)

    def _consumers(self, passed: Passed) -> Sequence[TokenTarget]:
        return self.tokens[passed.ticket is not None].get(passed.node, ())

    def _deliver(self, number: int, passed: Passed) -> None:
        self.player.deliver(self._iteration(number), self._consumers(passed), passed)

    def _iteration(self, number: int) -> Activation:
        """The activation of an iteration."""
        activation = self.iterations.get(number)
        if activation is None:
            turn = self.first_turn + number
            body = self._oracle.body(AskedIteration(self.parent, self.frame, number, turn, self.count, self.dead))
            loops = (
                *self.parent.place.loops,
                LoopTurn(self.parent.place.path.name(self.description.name), number, self),
            )
            place = Place(self.parent.place.graph, self.parent.place.path, turn, number, loops)
            activation = self.iterations[number] = self.player.begin(body, place, self, -1)
            self.latest = number
        return activation

    def began(self, activation: Activation) -> None:
        """An iteration ends in one partition after the other."""
        activation.ends_by_partition()

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
            for passed in window.dead_exits:
                self.player.deliver(self.parent, self._consumers(passed), passed._replace(entry=entry))
            self.player.left(self.parent, place, entry)

    def _is_done(self, window: _Window, place: int, number: int) -> bool:
        activation = self.iterations.get(number)
        if activation is not None and activation.left_in is not None and activation.left_in.get(place):
            return False
        return not window.missing if number == 0 else number - 1 not in window.open
