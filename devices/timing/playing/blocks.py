"""The events of a step in which repeated iterations were not played (see `folding`).

segment    entries of the log    events
played     0 to 60               60, one run each
repeated   40 to 60              20, later by one period, 99995 runs each, iteration "w:3-99997"
played     60 to the end         later by 99995 periods
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..events import Events, TextColumn, TimeBounds
from ..hardware.log import KINDS
from ..repeated import AllRuns
from .pieces import Played, clock_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....graph.arrays import Flags, Numbers
    from .activation import Activation, PlayedRun
    from .pieces import ClockPiece, Repeated
    from .player import Player


class _InBlock(NamedTuple):
    """What is repeated: entries `first` to `end` of the log, and the segments before it."""

    first: int
    end: int
    segment: int


@dataclass(frozen=True, slots=True)
class _ClockSegment:
    """Entries `first` to `end` of the log as events, later by `offset_ns`, each `runs` times.

    `numbers` has by loop what to add to the numbers of its iterations: for the first and for the last of the runs.
    `blocks` are those that it is in, outermost first.
    """

    first: int
    end: int
    offset_ns: int
    runs: int
    numbers: Mapping[PlayedRun, tuple[int, int]]
    blocks: tuple[_InBlock, ...]


class _ClockSegments:
    """The pieces of a step, one after the other."""

    def __init__(self, pieces: Iterable[ClockPiece]) -> None:
        self.all: list[_ClockSegment] = []
        self._add(pieces, 0, _ClockSegment(0, 0, 0, 1, {}, ()))

    def _add(self, pieces: Iterable[ClockPiece], at_ns: int, within: _ClockSegment) -> None:
        """Adds pieces, the first of which begins at an instant; `within` is as they are."""
        for piece in pieces:
            if isinstance(piece, Played):
                first, end = piece.first, piece.end
                offset_ns = at_ns - first.clock_ns
                self.all.append(replace(within, first=first.entry, end=end.entry, offset_ns=offset_ns))
            else:
                within = self._add_block(piece, at_ns, within)
            at_ns += piece.duration_ns

    def _add_block(self, piece: Repeated, at_ns: int, within: _ClockSegment) -> _ClockSegment:
        """Adds what is repeated; returns as what follows is."""
        loop, period, last = piece.loop, piece.iterations, piece.iterations * piece.runs
        first, end = piece.entries
        # Loops inside that have been shortened since what is repeated began are as they were then.
        begun = next(segment.numbers for segment in reversed(self.all) if segment.first <= first < segment.end)
        low, high = begun.get(loop, (0, 0))
        repeated = replace(
            within,
            runs=within.runs * piece.runs,
            numbers={**begun, loop: (low + period, high + last)},
            blocks=(*within.blocks, _InBlock(first, end, len(self.all))),
        )
        self._add(piece.pieces, at_ns, repeated)
        low, high = within.numbers.get(loop, (0, 0))
        return replace(within, numbers={**within.numbers, loop: (low + last, high + last)})


def with_blocks(events: Events, player: Player) -> Events:
    """The events of all segments, from those of all entries of the log."""
    pieces, activations = player.folding.pieces(), player.activations
    if len(pieces) == 1:
        return events
    segments = _ClockSegments(pieces).all
    bases = np.array([activation.base for activation in activations], np.int64)
    activation = np.searchsorted(bases, np.frombuffer(player.log.entries, np.int64) // KINDS, "right") - 1
    counts = [segment.end - segment.first for segment in segments]
    order = np.concatenate([np.arange(segment.first, segment.end) for segment in segments])
    of = np.repeat(np.arange(len(segments)), counts)
    offset, runs = (
        np.array(column, np.int64)[of] for column in zip(*((s.offset_ns, s.runs) for s in segments), strict=True)
    )
    pairs, numbers = np.unique(of * len(activations) + activation[order], return_inverse=True)

    def labels() -> list[str]:
        both = (divmod(pair, len(activations)) for pair in pairs.tolist())
        return [_label(segments[number], activations[which]) for number, which in both]

    device, stream, node, op, provenance = (
        TextColumn(column.numbers[order], column.make_texts)
        for column in (events.device, events.stream, events.node, events.op, events.provenance)
    )

    def bounds() -> TimeBounds:
        low_ns, high_ns = events.bounds_ns
        return low_ns[order], high_ns[order]

    return Events(
        device=device,
        stream=stream,
        node=node,
        op=op,
        kind=events.kind[order],
        start_ns=events.start_ns[order] + offset,
        end_ns=events.end_ns[order] + offset,
        bytes=events.bytes[order],
        flops=events.flops[order],
        provenance=provenance,
        cause=_causes(events.cause, segments),
        iteration=TextColumn(numbers.reshape(-1), labels),
        runs=runs,
        make_bounds=bounds,
        all_runs=AllRuns(events.start_ns[order], events.end_ns[order], clock_spans(pieces)),
    )


def _causes(causes: Numbers, segments: Sequence[_ClockSegment]) -> Numbers:
    """By event the event that is its cause: the latest before it that stands for the entry."""
    begins = np.cumsum([0, *(segment.end - segment.first for segment in segments)]).tolist()
    columns = []
    for number, segment in enumerate(segments):
        entries, inside = _entries_of_causes(causes, segment)
        column = np.where(entries < 0, -1, entries - segment.first + begins[number])
        for k in np.flatnonzero((entries >= 0) & ((entries < segment.first) | ~inside)).tolist():
            before = number if inside[k] else segment.blocks[-1].segment
            column[k] = _latest(int(entries[k]), segments, begins, segment.blocks, before)
        columns.append(column)
    return np.concatenate(columns)


def _entries_of_causes(causes: Numbers, segment: _ClockSegment) -> tuple[Numbers, Flags]:
    """By entry of a segment the entry that is its cause, and whether that is in the same run of its block.

    In a block it is what the period after the block says, which was played from the end of what is repeated on: there
    the entries before are those that were under way when it began, as in all runs.
    """
    if not segment.blocks:
        entries = causes[segment.first : segment.end]
        return entries, np.ones(len(entries), np.bool_)
    block = segment.blocks[-1]
    period = block.end - block.first
    entries = causes[segment.first + period : segment.end + period]
    inside = entries >= block.end
    return np.where(inside, entries - period, entries), inside


def _latest(
    entry: int, segments: Sequence[_ClockSegment], begins: Sequence[int], blocks: Sequence[_InBlock], before: int
) -> int:
    """The event that stands for an entry in the latest segment before one, which is in some blocks."""
    for block in reversed(blocks[:-1]):
        if entry < block.first:
            entry, before = entry + block.end - block.first, min(before, block.segment)
    for number in range(before - 1, -1, -1):
        segment = segments[number]
        if segment.first <= entry < segment.end:
            return begins[number] + entry - segment.first
    return -1


def _label(segment: _ClockSegment, activation: Activation) -> str:
    """The iterations of an activation in a segment: a range where it stands for several."""
    parts = []
    for turn in activation.place.loops:
        low, high = segment.numbers.get(turn.loop, (0, 0))
        text = str(turn.number + low) if low == high else f"{turn.number + low}-{turn.number + high}"
        parts.append(f"{turn.name}:{text}")
    return "/".join(parts)


def offsets_of(pieces: Iterable[ClockPiece], entries: int, end_ns: Numbers) -> tuple[Numbers, Numbers]:
    """By entry how much later it was, and its end, than the log says; what ends in a later piece, ends at its end."""
    played = [piece for piece in pieces if isinstance(piece, Played)]
    offsets = np.array([segment.offset_ns for segment in _ClockSegments(pieces).all if not segment.blocks], np.int64)
    of = np.searchsorted([piece.end.entry for piece in played], np.arange(entries), "right")
    last = np.searchsorted([piece.end.clock_ns for piece in played], end_ns)
    return offsets[of], offsets[np.clip(last, of, len(played) - 1)]
