"""The curve of a memory in a step of which a part was played once for many runs of it.

    clock    0 ........ 60 ..... 90         10 bytes from 45 to 50, once
    spans    0 to 60, 995 times 40 to 60, 60 to 90
    step     10 bytes from 45 to 50, from 65 to 70, from 85 to 90, ...

What is in use at an instant of the step is what was in use at the instant of the clock that it repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....errors import UnimplementedError
from ..repeated import ClockSpan
from .curve import MemoryCurve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ....graph.arrays import Numbers
    from ..repeated import StepSpans

MOST_POINTS = 1 << 21
"""of a curve: more take too much memory"""


def repeated_curve(curve: MemoryCurve, spans: Sequence[StepSpans]) -> MemoryCurve:
    """The curve of the whole step; `curve` has what was played, at the times of the first runs.

    UnimplementedError for one of more than `MOST_POINTS` instants.
    """
    played = _PlayedCurve(_clock_ns(curve.at_ns, spans), np.stack(list(curve.by_category.values()), axis=1))
    at_ns, bytes_in_use = played.over(spans)
    # A span ends before its last instant, with which the next begins; that of the step itself has none after it.
    at_ns = np.append(at_ns, sum(span.duration_ns for span in spans))
    bytes_in_use = np.append(bytes_in_use, played.bytes_in_use[-1:], axis=0)
    is_change = np.ones(len(at_ns), np.bool_)
    is_change[1:] = (bytes_in_use[1:] != bytes_in_use[:-1]).any(axis=1)
    kept = bytes_in_use[is_change].T
    return MemoryCurve(at_ns[is_change], dict(zip(curve.by_category, kept, strict=True)))


def _clock_ns(step_ns: Numbers, spans: Iterable[StepSpans]) -> Numbers:
    """Instants of the step as those of the clock; what is between first runs is where the repetition begins."""
    clock_ns, begin, clock = np.zeros_like(step_ns), 0, 0
    for span in spans:
        if isinstance(span, ClockSpan):
            inside = step_ns >= begin
            clock_ns[inside] = np.minimum(step_ns[inside] - begin + span.from_ns, span.to_ns)
            clock = span.to_ns
        else:
            clock_ns[step_ns >= begin] = clock
        begin += span.duration_ns
    return clock_ns


class _PlayedCurve:
    """What was in use by the clock: a row of bytes by category from each instant on."""

    def __init__(self, at_ns: Numbers, bytes_in_use: NDArray[np.int64]) -> None:
        last = np.append(at_ns[1:] != at_ns[:-1], True)  # of several at one instant the last counts
        self.at_ns, self.bytes_in_use = at_ns[last], bytes_in_use[last]

    def over(self, spans: Iterable[StepSpans]) -> tuple[Numbers, NDArray[np.int64]]:
        """The rows of spans one after the other, from 0 on."""
        times, rows, begin, points = [], [], 0, 0
        for span in spans:
            if not span.duration_ns:
                continue
            if isinstance(span, ClockSpan):
                at_ns, bytes_in_use = self._between(span)
            else:
                of_a_run, bytes_in_use = self.over(span.spans)
                points += span.runs * len(of_a_run)
                if points > MOST_POINTS:
                    raise UnimplementedError(
                        f"the curve of a memory has over {MOST_POINTS:,} points in {span.runs:,} runs of an iteration; "
                        "ask for its peak, or simulate fewer iterations"
                    )
                at_ns = (np.arange(span.runs)[:, None] * span.period_ns + of_a_run).reshape(-1)
                bytes_in_use = np.tile(bytes_in_use, (span.runs, 1))
            times.append(at_ns + begin)
            rows.append(bytes_in_use)
            begin += span.duration_ns
        return np.concatenate(times), np.concatenate(rows)

    def _between(self, span: ClockSpan) -> tuple[Numbers, NDArray[np.int64]]:
        """The rows from one instant of the clock to another, counted from the first."""
        first = max(int(np.searchsorted(self.at_ns, span.from_ns, side="right")) - 1, 0)
        end = int(np.searchsorted(self.at_ns, span.to_ns, side="left"))
        end = max(end, first + 1)
        return np.maximum(self.at_ns[first:end] - span.from_ns, 0), self.bytes_in_use[first:end]
