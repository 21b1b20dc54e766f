"""Equal iterations of a loop are played once: when the state repeats, the rest is a block of repeated events.

After an iteration has begun, everything that decides how the step goes on is compared with what it was after earlier
ones: the hardware, transfers that are under way, and what every open activation waits for, with iterations counted from
the latest one. If it is equal, the events since then repeat until the loop comes to its end:

    played     w:0  w:1  w:2 = w:1 again          w:99998  w:99999  w:100000
    events     one by one            w:3-99997, runs 99995     one by one

Where several iterations are under way at a time, on several devices, it may take some until the state is that of an
earlier one, and the block may have several iterations: a period.

The clock is not moved: the loop is shortened by the iterations of the block, and all later events are shifted when they
are written down (`pieces`). Only the last iterations are played again, as they differ, and before them as many as it
takes until what is under way has ended: so its ends, and what they release, are those of the repetitions too. Nothing
is folded on a cluster with slow devices or degraded links, whose speed depends on the time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from ..hardware.log import KINDS
from ..memory.holder_blocks import Repetition
from .pieces import Mark, Played, Repeated, since

if TYPE_CHECKING:
    from .activation import Activation, PlayedRun
    from .pieces import ClockPiece
    from .player import Player

_ALWAYS, _SOMETIMES = 32, 8  # iterations that are compared: the first ones, then as many after every power of two
FEWEST = 64
"""iterations that must be left: shorter loops are played, and listed, one by one"""
_KEPT = 16  # states that a new one is compared with: the longest period


class _Seen(NamedTuple):
    """The state after an iteration has begun, when that was, and in which piece."""

    state: Hashable
    number: int
    mark: Mark
    piece: int


class Folding:
    """Finds repetitions in the loops of a step that is being played."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.repetitions: list[Repetition] = []
        """what is repeated, in order"""
        self.begun: dict[PlayedRun, None] = {}
        """loops of which an iteration has begun since the last check"""
        self._pieces: list[ClockPiece] = []
        self._since = self._mark()
        self._skipped_ns = 0
        self._seen: dict[PlayedRun, list[_Seen]] = {}
        self._folded: set[PlayedRun] = set()

    def pieces(self) -> list[ClockPiece]:
        """What the clock stands for until now."""
        clock_ns, entry, search = self._mark()
        end = Mark(max(clock_ns, max(self.player.log.end_ns, default=0)), entry, search)
        return [*self._pieces, Played(self._since, end)]

    def _mark(self) -> Mark:
        engine = self.player.engine
        return Mark(engine.now(), len(engine.log), len(engine.network.searches))

    def check(self) -> None:
        """Shortens loops whose state repeats; called between two events of the clock."""
        begun = list(self.begun)
        self.begun.clear()
        for loop in begun:
            assert loop.count is not None  # as its iterations run alike
            number = loop.latest
            beyond = number - (1 << number.bit_length() - 1) if number else 0
            if loop.count - number < FEWEST or loop in self._folded:
                self._seen.pop(loop, None)
            elif number < _ALWAYS or beyond < _SOMETIMES:
                self._compare(loop, number)

    def _compare(self, loop: PlayedRun, number: int) -> None:
        state = self._state(loop, number)
        if state is None:
            self.begun[loop] = None  # once more after the next event
            return
        seen = self._seen.setdefault(loop, [])
        here = _Seen(state, number, self._mark(), len(self._pieces))
        for before in reversed(seen):
            if before.state == state and before.number < number and self._is_alone(loop, before.mark.entry):
                self._fold(loop, before, here)
                return
        seen.append(here)
        del seen[:-_KEPT]

    def _is_alone(self, loop: PlayedRun, entry: int) -> bool:
        """Whether all that happened since an entry was in a loop."""
        entries, owner = self.player.log.entries, self.player.owner
        return all(
            any(turn.loop is loop for turn in owner(entries[k] // KINDS).place.loops)
            for k in range(entry, len(entries))
        )

    def _is_nested(self, entry: int) -> bool:
        """Whether a loop in another one has run since an entry."""
        entries = self.player.log.entries
        places = {self.player.owner(entries[k] // KINDS).place for k in range(entry, len(entries))}
        return any(len(place.loops) > 1 for place in places)

    def _fold(self, loop: PlayedRun, before: _Seen, here: _Seen) -> None:
        period = here.number - before.number
        pieces = [*self._pieces, Played(self._since, here.mark)]
        repeated = since(pieces, before.piece, before.mark)
        runs = self._runs(loop, period, sum(piece.duration_ns for piece in repeated))
        if runs < 1:
            return
        block = Repeated(repeated, runs, loop, period)
        self._pieces, self._since = [*pieces, block], here.mark
        self._skipped_ns += block.duration_ns
        after_ns = here.mark.clock_ns + self._skipped_ns
        is_nested = self._is_nested(before.mark.entry)
        self.repetitions.append(Repetition(before.mark.entry, here.mark.entry, runs, after_ns, is_nested))
        loop.shorten(runs * period)
        self._folded.add(loop)

    def _runs(self, loop: PlayedRun, period: int, period_ns: int) -> int:
        """How often a period repeats before the last iterations, and those in which what is under way ends.

        A copy that has been under way for so many periods ends before as many more are over, as the one that is younger
        by that would have been under way too.
        """
        assert loop.count is not None  # as in `check`
        oldest_ns, settling = self.player.engine.oldest_copy_ns(), 1
        if oldest_ns is not None:
            if not period_ns:
                return 0
            settling += (self.player.engine.now() - oldest_ns) // period_ns
        return (loop.count - 1 - loop.latest) // period - settling

    def _state(self, loop: PlayedRun, number: int) -> Hashable | None:
        """What decides how the step goes on, with iterations of the loop counted from `number`."""
        player = self.player

        def place_of(activation: Activation) -> Hashable:
            place, relative = activation.place, None
            loops = tuple(
                turn.number - number if turn.loop is loop else (turn.name, turn.number) for turn in place.loops
            )
            relative = any(turn.loop is loop for turn in place.loops)
            return loops, str(place.path), id(activation.body) if relative else activation.base

        def name(row: int) -> Hashable:
            activation = player.owner(row)
            return place_of(activation), row - activation.base

        hardware = player.engine.state(name)
        if hardware is None:
            return None
        activations = [
            (place_of(a), tuple(a.waits), a.left, *(run.state(number if run is loop else 0) for run in a.inner()))
            for a in player.open_activations()
        ]
        return hardware, tuple(activations), player.tickets(name)
