"""The events of a timeline in columns, and single events made of them when asked for.

    columns   start_ns 0 4000 ...   node -> names   stream -> streams   cause -1 0 ...
    [1]       TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, 4000, ...)

A step of a million events stays a few arrays as long as nobody looks at single ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ...graph.arrays import Flags, Numbers
from .covered import Covered, PointsInTime
from .repeated import AllRuns

EventType = Literal["compute", "send", "recv", "copy", "launch", "wait", "collective"]
COMPUTE_STREAM = "compute"
COMMUNICATION_STREAM = "communication"
"""begins the names of the streams of collectives: "communication:1" is that of group 1"""
KINDS: tuple[EventType, ...] = get_args(EventType)


class TimelineEvent(NamedTuple):
    """One event, from `start_ns` to `end_ns` after the start of the step.

    `node` is the node's name, or the tensor's name for a copy. `bytes` are moved in memory by an op, over links by a
    copy; of a collective they are its size as `collective_time` has it. `provenance` is the source of the duration; of
    a copy it is the link that limited its rate for longest, of a collective what it is ("all_reduce of 8 gpus over
    NVLink4").
    `cause` is the index of the event whose end let this one start: its last input, or the event that occupied its
    stream before; -1 for an event that waited for none. `iteration` says in which iterations of which loops it happened
    ("outer:2/inner:0", "w:3-99998"); it is empty outside. An event that stands for `runs` equal ones, one after the
    other, has the times, operations and bytes of the first. In four of five runs the duration is between `low_ns` and
    `high_ns`; both are None where the source of the duration does not say how sure it is. `step` is the number of the
    step in the timeline of a session, whose times count from its opening; 0 in the timeline of one step.
    """

    device: str
    stream: str
    node: str
    op: str
    kind: EventType
    start_ns: int
    end_ns: int
    bytes: int = 0
    flops: int = 0
    provenance: str = "roofline"
    cause: int = -1
    iteration: str = ""
    runs: int = 1
    low_ns: int | None = None
    high_ns: int | None = None
    step: int = 0

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from start to end."""
        return self.end_ns - self.start_ns

    @property
    def occupies(self) -> bool:
        """Whether it takes its stream's time: computing, copying and collectives do."""
        return self.kind in OCCUPYING


OCCUPYING: tuple[EventType, ...] = ("compute", "copy", "collective")


@dataclass
class TextColumn:
    """Texts by event: numbers into `texts`, which is called at the first look."""

    numbers: Numbers
    make_texts: Callable[[], Sequence[str]]

    @cached_property
    def texts(self) -> Sequence[str]:
        """The texts that `numbers` number."""
        return self.make_texts()

    def __getitem__(self, index: int) -> str:
        return self.texts[int(self.numbers[index])]

    def in_order(self, of: slice | Numbers) -> Iterator[str]:
        """The texts of some events."""
        texts = self.texts
        return (texts[number] for number in self.numbers[of].tolist())

    def is_text(self, text: str) -> NDArray[np.bool_]:
        """Which events have that text."""
        return np.isin(self.numbers, [number for number, known in enumerate(self.texts) if known == text])

    def first_seen(self) -> list[str]:
        """Every text that some event has, in order of first appearance."""
        numbers, first = np.unique(self.numbers, return_index=True)
        return list(dict.fromkeys(self.texts[number] for number in numbers[np.argsort(first)].tolist()))


def column_of(texts: Iterable[str]) -> TextColumn:
    """The column of given texts."""
    numbers: dict[str, int] = {}
    column = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    known = list(numbers)
    return TextColumn(column, lambda: known)


def as_numbers(values: Sequence[int]) -> Numbers:
    """A column of integers; of Python's where one is beyond 64 bits."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)


UNKNOWN_NS = -1
"""the bound of a duration of which nobody says how sure it is"""
TimeBounds = tuple[Numbers, Numbers]


@dataclass
class Events:
    """Columns by event; `kind` indexes `KINDS`.

    `make_bounds` returns `low_ns` and `high_ns`, which are computed at the first look: a simulation that nobody asks
    for them does not pay for them.
    """

    device: TextColumn
    stream: TextColumn
    node: TextColumn
    op: TextColumn
    kind: NDArray[np.uint8]
    start_ns: Numbers
    end_ns: Numbers
    bytes: Numbers
    flops: Numbers
    provenance: TextColumn
    cause: Numbers
    iteration: TextColumn
    runs: Numbers
    make_bounds: Callable[[], TimeBounds] = field(repr=False)
    step: Numbers | None = None
    """of the timeline of a session"""
    all_runs: AllRuns | None = field(default=None, repr=False)
    """where events stand for several runs, it knows when all of them are under way"""

    @classmethod
    def of(cls, events: Iterable[TimelineEvent]) -> Events:
        """The columns of given events."""
        rows = list(events)
        bounds = _known([row.low_ns for row in rows]), _known([row.high_ns for row in rows])
        return cls(
            device=column_of(row.device for row in rows),
            stream=column_of(row.stream for row in rows),
            node=column_of(row.node for row in rows),
            op=column_of(row.op for row in rows),
            kind=np.array([KINDS.index(row.kind) for row in rows], np.uint8),
            start_ns=as_numbers([row.start_ns for row in rows]),
            end_ns=as_numbers([row.end_ns for row in rows]),
            bytes=as_numbers([row.bytes for row in rows]),
            flops=as_numbers([row.flops for row in rows]),
            provenance=column_of(row.provenance for row in rows),
            cause=as_numbers([row.cause for row in rows]),
            iteration=column_of(row.iteration for row in rows),
            runs=as_numbers([row.runs for row in rows]),
            make_bounds=lambda: bounds,
            step=as_numbers([row.step for row in rows]) if any(row.step for row in rows) else None,
        )

    def __len__(self) -> int:
        return len(self.start_ns)

    def __getitem__(self, index: int) -> TimelineEvent:
        at = range(len(self))[index]  # IndexError for what there is not
        return next(self.rows(slice(at, at + 1)))

    def __iter__(self) -> Iterator[TimelineEvent]:
        return self.rows(slice(None))

    def rows(self, of: slice | Numbers) -> Iterator[TimelineEvent]:
        """Some of the events, by their numbers."""
        columns = (
            *(column.in_order(of) for column in (self.device, self.stream, self.node, self.op)),
            (KINDS[kind] for kind in self.kind[of].tolist()),
            *(column[of].tolist() for column in (self.start_ns, self.end_ns, self.bytes, self.flops)),
            self.provenance.in_order(of),
            self.cause[of].tolist(),
            self.iteration.in_order(of),
            self.runs[of].tolist(),
            *(map(_or_none, bounds[of].tolist()) for bounds in self.bounds_ns),
            self.steps[of].tolist(),
        )
        return map(TimelineEvent._make, zip(*columns, strict=True))

    @property
    def steps(self) -> Numbers:
        """The steps of a session by number; 0 in the timeline of one step."""
        return np.zeros(len(self), np.int64) if self.step is None else self.step

    @cached_property
    def bounds_ns(self) -> TimeBounds:
        """The two columns that say between which durations four of five runs are."""
        return self.make_bounds()

    @property
    def low_ns(self) -> Numbers:
        """The shortest duration of four of five runs, `UNKNOWN_NS` where nobody says."""
        return self.bounds_ns[0]

    @property
    def high_ns(self) -> Numbers:
        """The longest duration of four of five runs, `UNKNOWN_NS` where nobody says."""
        return self.bounds_ns[1]

    def covered_ns(self, chosen: Flags, before_ns: PointsInTime) -> PointsInTime:
        """The time before each instant in which one of the chosen events was under way, with all runs of each."""
        if self.all_runs is not None:
            return self.all_runs.covered_ns(chosen, before_ns)
        return Covered(self.start_ns[chosen], self.end_ns[chosen]).before(before_ns)

    @property
    def duration_ns(self) -> Numbers:
        """Nanoseconds from start to end of one run."""
        return self.end_ns - self.start_ns

    def of_kind(self, *kinds: EventType) -> NDArray[np.bool_]:
        """Which events are of one of the kinds."""
        return np.isin(self.kind, [KINDS.index(kind) for kind in kinds])


def _known(bounds: Sequence[int | None]) -> Numbers:
    return as_numbers([UNKNOWN_NS if bound is None else bound for bound in bounds])


def _or_none(bound: int) -> int | None:
    return None if bound == UNKNOWN_NS else bound
