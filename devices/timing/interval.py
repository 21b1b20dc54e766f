"""How sure a step is of its makespan: an interval that four of five steps are in.

    critical path     time      bounds           source, class       too long by up to
    MatMul            10 us     9 to 12 us       fitted, product     2 us  } one source and class: they err together
    MatMul            20 us     18 to 24 us      fitted, product     4 us  } 6 us
    Relu              3 us      2 to 11 us       roofline, memory    8 us
    makespan 33 us    at most 33 + sqrt(6^2 + 8^2) = 43 us

Deviations of one source and class of ops add up; those of different ones are independent, and the root of the sum of
their squares is taken, downwards and upwards apart. Limits: only the critical path counts, so a path that is a little
shorter and less sure is missed; copies that wait for others are as uncertain as those that do not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InvalidArgumentError
from .costs.classes import op_class
from .totals import grouped_totals

if TYPE_CHECKING:
    from .events import Events, TimelineEvent

_SOURCES = {"copy": "links", "collective": "collectives"}  # where the provenance says something else


def interval_of(path: Iterable[TimelineEvent], makespan_ns: int) -> tuple[int, int]:
    """The bounds of a makespan whose critical path has these events, in ns.

    Raises InvalidArgumentError where a source of theirs does not say how sure it is.
    """
    shorter, longer = defaultdict[tuple[str, str], int](int), defaultdict[tuple[str, str], int](int)
    silent: Counter[str] = Counter()
    for event in path:
        if not event.duration_ns:
            continue
        if event.low_ns is None or event.high_ns is None:
            silent[event.provenance] += 1
            continue
        key = _SOURCES.get(event.kind, event.provenance), op_class(event.op)
        shorter[key] += max(0, event.duration_ns - event.low_ns) * event.runs
        longer[key] += max(0, event.high_ns - event.duration_ns) * event.runs
    if silent:
        listed = ", ".join(f"{count} from {source!r}" for source, count in sorted(silent.items()))
        raise InvalidArgumentError(
            f"no interval: {silent.total()} events of the critical path have a time without bounds ({listed}); "
            "use a source whose costs have low_ns and high_ns"
        )
    return max(0, makespan_ns - _together(shorter.values())), makespan_ns + _together(longer.values())


def _together(deviations: Iterable[int]) -> int:
    """The root of the sum of squares, rounded up."""
    squares = sum(deviation * deviation for deviation in deviations)
    return isqrt(squares - 1) + 1 if squares else 0


def runs_by_source(events: Events) -> dict[str, int]:
    """Runs of ops that took time by the provenance of the time, most runs first."""
    counted = events.of_kind("compute") & (events.duration_ns > 0)
    numbers, group = np.unique(events.provenance.numbers[counted], return_inverse=True)
    sums = grouped_totals(events.runs[counted], np.ones_like(group), group, len(numbers))
    runs: Counter[str] = Counter()
    for number, count in zip(numbers.tolist(), sums, strict=True):
        runs[events.provenance.texts[number]] += count
    return dict(sorted(runs.items(), key=lambda item: (-item[1], item[0])))
