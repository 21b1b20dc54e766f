"""The events of several timelines as those of one, each from its own instant on.

first, from 0 on     0..400    400..900
second, from 900 on                        0..300                 causes count on, texts get common numbers
joined               0..400    400..900    900..1200
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .events import Events, TextColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .events import TimeBounds


def joined_events(parts: Sequence[tuple[int, Events]]) -> Events:
    """The events of parts, which begin at the given nanoseconds, one part after the other."""
    events = [part for _, part in parts]
    first = np.cumsum([0, *map(len, events)]).tolist()
    causes = [np.where(part.cause < 0, -1, part.cause + begin) for part, begin in zip(events, first, strict=False)]

    def bounds() -> TimeBounds:
        low, high = zip(*(part.bounds_ns for part in events), strict=True)
        return np.concatenate(low), np.concatenate(high)

    return Events(
        device=_joined([part.device for part in events]),
        stream=_joined([part.stream for part in events]),
        node=_joined([part.node for part in events]),
        op=_joined([part.op for part in events]),
        kind=np.concatenate([part.kind for part in events]),
        start_ns=np.concatenate([part.start_ns + start for start, part in parts]),
        end_ns=np.concatenate([part.end_ns + start for start, part in parts]),
        bytes=np.concatenate([part.bytes for part in events]),
        flops=np.concatenate([part.flops for part in events]),
        provenance=_joined([part.provenance for part in events]),
        cause=np.concatenate(causes),
        iteration=_joined([part.iteration for part in events]),
        runs=np.concatenate([part.runs for part in events]),
        make_bounds=bounds,
        step=np.concatenate([part.steps for part in events]),
    )


def _joined(columns: Sequence[TextColumn]) -> TextColumn:
    """One column, with a number for each text."""
    numbers: dict[str, int] = {}
    joined = []
    for column in columns:
        common = np.array([numbers.setdefault(text, len(numbers)) for text in column.texts], np.int64)
        joined.append(common[column.numbers])
    texts = list(numbers)
    return TextColumn(np.concatenate(joined), lambda: texts)
