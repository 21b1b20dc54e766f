"""Equal iterations of a loop are played once: when the state repeats, the rest is a block of repeated events.

At the beginning of an iteration, everything that decides how the step goes on is compared with what it was at the
beginning of earlier ones: the hardware, and what every open activation waits for, with iterations counted from the
present one. If it is equal, the events since then repeat until the loop comes to its end:

    played     w:0  w:1  w:2 = w:1 again          w:99998  w:99999  w:100000
    events     one by one            w:3-99997, runs 99995     one by one

The clock is not moved: the loop is shortened by the iterations of the block, and all later events are shifted when they
are written down (`Segment`). Only the last iterations are played again, as they differ. Nothing is folded on a cluster
with slow devices or degraded links, whose speed depends on the time.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..hardware.log import COPY, KINDS
from ..memory.holder_blocks import Repetition

if TYPE_CHECKING:
    from .activation import Activation, PlayedRun
    from .player import Player

_ALWAYS, _SOMETIMES = 32, 3  # iterations that are compared: the first ones, then as many after every power of two
FEWEST = 64
"""iterations that must be left: shorter loops are played, and listed, one by one"""
_KEPT = 8  # states that a new one is compared with: the longest period


@dataclass(slots=True)
class Segment:
    """Entries `first` to `end` (None: all that follow) of the log as events, later by `offset_ns`, each `runs` times.

    `numbers` has by loop what to add to the numbers of its iterations: for the first and for the last of the runs.
    """

    first: int
    end: int | None = None
    offset_ns: int = 0
    runs: int = 1
    numbers: dict[PlayedRun, tuple[int, int]] = field(default_factory=dict)
    period: int = 0
    """entries that a repetition has, 0 for what was played"""


class _Seen(NamedTuple):
    """The state at the beginning of an iteration, and where in the log and the segments that was."""

    state: Hashable
    number: int
    now_ns: int
    entry: int
    segment: int


class Folding:
    """Finds repetitions in the loops of a step that is being played. `segments` say how its log becomes events."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.segments = [Segment(0)]
        self.repetitions: list[Repetition] = []
        """what the segments repeat, in order"""
        self.begun: list[tuple[PlayedRun, int]] = []
        """loops of which an iteration has begun since the last check, with its number"""
        self._seen: dict[PlayedRun, list[_Seen]] = {}
        self._offsets = [(0, 0)]  # from an instant of the clock on: what to add to get the time of the step

    def time_ns(self, clock_ns: int) -> int:
        """The time of the step at an instant of the clock, which passes over the blocks."""
        offset_ns = 0
        for since_ns, later_ns in self._offsets:
            if since_ns > clock_ns:
                break
            offset_ns = later_ns
        return clock_ns + offset_ns

    def check(self) -> None:
        """Shortens loops whose state repeats; called between two events of the clock."""
        begun, self.begun = self.begun, []
        for loop, number in begun:
            assert loop.count is not None  # as its iterations run alike
            left = loop.count - number
            beyond = number - (1 << number.bit_length() - 1) if number else 0
            if left >= FEWEST and (number < _ALWAYS or beyond < _SOMETIMES):
                self._compare(loop, number)

    def _compare(self, loop: PlayedRun, number: int) -> None:
        state = self._state(loop, number)
        seen = self._seen.setdefault(loop, [])
        if state is None:
            return
        log, offset_ns = self.player.log, self.segments[-1].offset_ns
        here = _Seen(state, number, self.player.engine.now() + offset_ns, len(log), len(self.segments) - 1)
        for before in seen:
            if before.state == state and self._is_alone(loop, before.entry):
                self._fold(loop, before, here)
                seen.clear()
                return
        seen.append(here)
        del seen[:-_KEPT]

    def _is_alone(self, loop: PlayedRun, entry: int) -> bool:
        """Whether all that happened since an entry was in a loop, without transfers."""
        entries = self.player.log.entries
        for k in range(entry, len(entries)):
            row, kind = divmod(entries[k], KINDS)
            if kind == COPY or all(turn.loop is not loop for turn in self.player.owner(row).place.loops):
                return False
        return True

    def _is_nested(self, loop: PlayedRun, entry: int) -> bool:
        """Whether the loop is in another one, or another one has run in it since an entry."""
        entries = self.player.log.entries
        places = {self.player.owner(entries[k] // KINDS).place for k in range(entry, len(entries))}
        return any(len(place.loops) > 1 for place in places)

    def _fold(self, loop: PlayedRun, before: _Seen, here: _Seen) -> None:
        period = here.number - before.number
        assert loop.count is not None  # as in `check`
        runs = (loop.count - here.number - 1) // period
        if runs < 1:
            return
        period_ns, skipped = here.now_ns - before.now_ns, runs * period
        last = self.segments[-1]
        last.end = here.entry
        repeated = [
            Segment(
                max(segment.first, before.entry),
                segment.end,
                segment.offset_ns + period_ns,
                segment.runs * runs,
                _shifted(segment.numbers, loop, period, skipped),
                here.entry - before.entry,
            )
            for segment in self.segments[before.segment :]
            if segment.end is None or segment.end > before.entry
        ]
        numbers = _shifted(last.numbers, loop, skipped, skipped)
        self.segments += [*repeated, Segment(here.entry, None, last.offset_ns + runs * period_ns, 1, numbers)]
        after_ns = here.now_ns + runs * period_ns
        self.repetitions.append(
            Repetition(before.entry, here.entry, runs, after_ns, self._is_nested(loop, before.entry))
        )
        self._offsets.append((self.player.engine.now(), last.offset_ns + runs * period_ns))
        loop.shorten(skipped)

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


def _shifted(
    numbers: dict[PlayedRun, tuple[int, int]], loop: PlayedRun, first: int, last: int
) -> dict[PlayedRun, tuple[int, int]]:
    low, high = numbers.get(loop, (0, 0))
    return {**numbers, loop: (low + first, high + last)}
