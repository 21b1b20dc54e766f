"""What the clock of a played step stands for: pieces that were played, and between them pieces that others repeat.

A loop that is shortened when the clock is at 60, as what happened since 40 happens 995 times more:

    clock     0 ................ 60                                60 ......... 90
    pieces    Played 0 to 60        Repeated (Played 40 to 60)     Played 60 to 90
    step      0 ................ 60 ......................... 19960 ......... 19990

In loops in loops the pieces that are repeated may be repeated ones themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..hardware.port_loads import spans_of
from ..repeated import ClockSpan, RepeatedSpans

if TYPE_CHECKING:
    from ..hardware.network import Network
    from ..repeated import StepSpans
    from .activation import PlayedRun


class Mark(NamedTuple):
    """Between two events of the clock: its time, and how many entries the log has and searches for rates there were."""

    clock_ns: int
    entry: int
    search: int


@dataclass(frozen=True, slots=True)
class Played:
    """What the clock has played from one mark to another."""

    first: Mark
    end: Mark

    @property
    def duration_ns(self) -> int:
        """Nanoseconds of the step."""
        return self.end.clock_ns - self.first.clock_ns


@dataclass(frozen=True, slots=True)
class Repeated:
    """What happens `runs` times more, in each of them so many `iterations` of a loop: not played, but as the pieces."""

    pieces: tuple[ClockPiece, ...]
    runs: int
    loop: PlayedRun
    iterations: int

    @property
    def period_ns(self) -> int:
        """Nanoseconds of one of the runs."""
        return sum(piece.duration_ns for piece in self.pieces)

    @property
    def duration_ns(self) -> int:
        """Nanoseconds of all of them."""
        return self.runs * self.period_ns

    @property
    def entries(self) -> tuple[int, int]:
        """The first entry of the log that is repeated, and the one after the last."""
        played = [piece for piece in self.pieces if isinstance(piece, Played)]
        return played[0].first.entry, played[-1].end.entry


ClockPiece: TypeAlias = Played | Repeated


def since(pieces: Sequence[ClockPiece], index: int, mark: Mark) -> tuple[ClockPiece, ...]:
    """The pieces from a mark on, which is in the one of that index."""
    first = pieces[index]
    assert isinstance(first, Played)  # as the clock was there
    return Played(mark, first.end), *pieces[index + 1 :]


def expanded(pieces: Iterable[ClockPiece], start_ns: int = 0) -> Iterator[tuple[Played, int]]:
    """What was played, as often as it happens, and when it begins."""
    for piece in pieces:
        if isinstance(piece, Played):
            yield piece, start_ns
        else:
            period_ns = piece.period_ns
            for run in range(piece.runs):
                yield from expanded(piece.pieces, start_ns + run * period_ns)
        start_ns += piece.duration_ns


def loads_in(pieces: Iterable[ClockPiece], network: Network, link: str) -> list[tuple[int, int, float]]:
    """(from ns, to ns, bytes/s) that a link carried in the time of some pieces."""
    changes = list(network.load_changes(link))
    searches = [search for search, _ in changes]
    return spans_of(
        (network.searches[search] - piece.first.clock_ns + start_ns, load)
        for piece, start_ns in expanded(pieces)
        for search, load in changes[bisect_left(searches, piece.first.search) : bisect_left(searches, piece.end.search)]
    )


def clock_spans(pieces: Iterable[ClockPiece]) -> tuple[StepSpans, ...]:
    """The pieces as times of the clock, which is all that covered time depends on."""
    return tuple(
        ClockSpan(piece.first.clock_ns, piece.end.clock_ns)
        if isinstance(piece, Played)
        else RepeatedSpans(clock_spans(piece.pieces), piece.runs)
        for piece in pieces
    )
