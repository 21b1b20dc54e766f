"""The events of a step in which repeated iterations were not played (see `folding`).

segment    entries of the log    events
played     0 to 60               60, one run each
repeated   40 to 60              20, later by one period, 99995 runs each, iteration "w:3-99997"
played     60 to the end         later by 99995 periods
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..events import Events, TextColumn, TimeBounds
from ..hardware.log import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....graph.arrays import Numbers
    from .activation import Activation
    from .folding import Segment
    from .player import Player


def with_blocks(events: Events, player: Player) -> Events:
    """The events of all segments, from those of all entries of the log."""
    segments, activations = player.folding.segments, player.activations
    if len(segments) == 1:
        return events
    bases = np.array([activation.base for activation in activations], np.int64)
    activation = np.searchsorted(bases, np.frombuffer(player.log.entries, np.int64) // KINDS, "right") - 1
    ends = [len(events) if segment.end is None else segment.end for segment in segments]
    counts = [end - segment.first for segment, end in zip(segments, ends, strict=True)]
    order = np.concatenate([np.arange(s.first, end) for s, end in zip(segments, ends, strict=True)])
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
        cause=_causes(events.cause, segments, ends, counts),
        iteration=TextColumn(numbers.reshape(-1), labels),
        runs=runs,
        make_bounds=bounds,
    )


def _causes(causes: Numbers, segments: Sequence[Segment], ends: list[int], counts: list[int]) -> Numbers:
    """By event the event that is its cause: the latest before it that stands for the entry."""
    begins = np.cumsum([0, *counts]).tolist()
    columns = []
    for number, (segment, end) in enumerate(zip(segments, ends, strict=True)):
        entries = causes[segment.first : end]
        column = np.where(entries < 0, -1, entries - segment.first + begins[number])
        for k in np.flatnonzero((entries >= 0) & (entries < segment.first)).tolist():
            # In a repetition it is what stands in the period before for the entry that is in flight at its beginning.
            entry = int(entries[k]) + segment.period
            for earlier in range(number - 1, -1, -1):
                if segments[earlier].first <= entry < ends[earlier]:
                    column[k] = begins[earlier] + entry - segments[earlier].first
                    break
        columns.append(column)
    return np.concatenate(columns)


def _label(segment: Segment, activation: Activation) -> str:
    """The iterations of an activation in a segment: a range where it stands for several."""
    parts = []
    for turn in activation.place.loops:
        low, high = segment.numbers.get(turn.loop, (0, 0))
        text = str(turn.number + low) if low == high else f"{turn.number + low}-{turn.number + high}"
        parts.append(f"{turn.name}:{text}")
    return "/".join(parts)


def offsets_of(segments: Sequence[Segment], count: int) -> Numbers:
    """By entry of the log how much later it was than the log says."""
    offsets = np.zeros(count, np.int64)
    for segment in segments:
        if not segment.period:
            offsets[segment.first : segment.end] = segment.offset_ns
    return offsets
