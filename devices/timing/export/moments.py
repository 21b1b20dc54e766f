"""What happens in a timeline, in order of time: events begin and end, and counters change.

    0 ns    begin of a         at one instant: first what ends, then what hands an arrow on to something else, then what
    400     end of a           else begins, then counters, in the order in which they were recorded
    400     begin of b
    400     counter 0 changes to its value 1

An event of 0 ns begins and does not end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ....graph.arrays import Flags
from ..events import Events
from .counters import Counter

_WHAT: tuple[Literal["end", "begin", "counter"], ...] = ("end", "begin", "begin", "counter")  # by rank
_END, _HANDS_ON, _BEGIN, _COUNTER = range(4)


class Moment(NamedTuple):
    """What happens to an event, by its number, or to a counter, whose value of number `row` begins."""

    what: Literal["end", "begin", "counter"]
    time_ns: int
    number: int
    row: int


def moments_of(events: Events, hands_on: Flags, counters: Sequence[Counter]) -> Iterator[Moment]:
    """All of them; `hands_on` are the events that arrows lead through."""
    numbers = np.arange(len(events))
    lasts = events.duration_ns > 0
    lengths = [len(counter.at_ns) for counter in counters]
    time_ns = np.concatenate([events.start_ns, events.end_ns[lasts], *(counter.at_ns for counter in counters)])
    begins = np.where(hands_on, _HANDS_ON, _BEGIN)
    rank = np.concatenate([begins, np.full(int(lasts.sum()), _END), np.full(sum(lengths), _COUNTER)])
    number = np.concatenate([numbers, numbers[lasts], np.repeat(np.arange(len(counters)), lengths)])
    row = np.concatenate([np.zeros(len(numbers) + int(lasts.sum()), np.int64), *map(np.arange, lengths)])
    order = np.lexsort((number, rank, time_ns.astype(np.int64)))
    columns = (column[order].tolist() for column in (rank, time_ns, number, row))
    for what, time, of, at in zip(*columns, strict=True):
        yield Moment(_WHAT[what], time, of, at)
