"""When events are under way that stand for several runs each, one after the other.

What was played on a clock says when an event was under way the first time. Spans of that clock, some of them repeated,
are the step, so they say when all its runs are:

    clock    0 ........ 60 ..... 90         an event from 45 to 50
    spans    0 to 60, 995 times 40 to 60, 60 to 90
    step     0 ........ 60 ......................... 19960 ......... 19990
                45 to 50, 65 to 70, 85 to 90, ...

In what is repeated there may be repeated spans themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .covered import Covered, PointsInTime

if TYPE_CHECKING:
    from ...graph.arrays import Flags, Numbers


@dataclass(frozen=True, slots=True)
class ClockSpan:
    """What the clock played from one time to another, once."""

    from_ns: int
    to_ns: int

    @property
    def duration_ns(self) -> int:
        """Nanoseconds of the step."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class RepeatedSpans:
    """Spans one after the other, `runs` times."""

    spans: tuple[StepSpans, ...]
    runs: int

    @cached_property
    def period_ns(self) -> int:
        """Nanoseconds of one of the runs."""
        return sum(span.duration_ns for span in self.spans)

    @property
    def duration_ns(self) -> int:
        """Nanoseconds of all of them."""
        return self.runs * self.period_ns


StepSpans: TypeAlias = ClockSpan | RepeatedSpans


@dataclass(frozen=True, slots=True)
class AllRuns:
    """By event when it was under way by the clock, and the spans of the clock that the step is made of."""

    start_ns: Numbers
    end_ns: Numbers
    spans: tuple[StepSpans, ...]

    def covered_ns(self, chosen: Flags, before_ns: PointsInTime) -> PointsInTime:
        """The time before each instant of the step in which one of the chosen events was under way."""
        return _before(self.spans, Covered(self.start_ns[chosen], self.end_ns[chosen]), before_ns)


def _before(spans: Iterable[StepSpans], covered: Covered, instants: PointsInTime) -> PointsInTime:
    """What is covered before instants, counted from the first span; `covered` is in times of the clock."""
    total: PointsInTime = np.zeros_like(instants)
    for span in spans:
        inside: PointsInTime = np.minimum(np.maximum(instants, 0), span.duration_ns)
        if isinstance(span, ClockSpan):
            begin_ns = np.array([span.from_ns])
            total = total + covered.before(begin_ns + inside) - covered.before(begin_ns)
        elif span.period_ns:
            runs, rest = np.divmod(inside, span.period_ns)
            of_a_run = _before(span.spans, covered, np.array([span.period_ns]))
            total = total + runs * of_a_run + _before(span.spans, covered, rest)
        instants = instants - span.duration_ns
    return total
