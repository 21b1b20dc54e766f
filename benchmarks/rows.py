"""A row: a promise about speed, and the figures measured for it.

A row without its peer has no ratio and no verdict. The verdict depends only on the ratio and the promise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .sampling import Sample

if TYPE_CHECKING:
    from .bench import Bench


class Kind(Enum):
    """How a promise is stated."""

    SHARE = "ours / peer"  # lower is better
    SPEED_UP = "peer / ours"  # higher is better
    LIMIT = "limit"  # an absolute figure, in the row's unit


@dataclass(frozen=True, slots=True)
class Promise:
    """`must` is the least that the work has to reach, `aim` the goal."""

    kind: Kind
    must: float
    aim: float | None = None


def share(must: float, aim: float) -> Promise:
    """At most this part of the peer's figure."""
    return Promise(Kind.SHARE, must, aim)


def speed_up(must: float, aim: float) -> Promise:
    """At least this many times as fast as the peer."""
    return Promise(Kind.SPEED_UP, must, aim)


def limit(must: float, aim: float | None = None) -> Promise:
    """At most this, without a peer."""
    return Promise(Kind.LIMIT, must, aim)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in the unit of its row; `cpu` is what the CPU clock said, where there is a clock."""

    value: float
    cpu: float | None = None

    def by(self, *, cpu: bool) -> float:
        """The CPU figure if asked for and there is one, else the wall figure."""
        return self.cpu if cpu and self.cpu is not None else self.value

    @classmethod
    def of(cls, sample: Sample, count: int = 1) -> Figure:
        """Seconds per item."""
        return cls(sample.wall_s / count, sample.cpu_s / count)


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of a case. `peer` is None if the peer is not installed; `floor` is what the stack costs at least."""

    ours: Figure
    peer: Figure | None = None
    floor: float | None = None


PUBLISHED = "published"
LOWERED = "lowered"
IN_PLACE = "in place"
IN_PROCESS = "in process"
ROOFLINE = "roofline"
POOL = "process pool"


class Skipped(Exception):
    """Raised by a row that cannot be measured here; its text says what is missing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A row to be measured: `key` ("set-up/1 device") selects it.

    `peer` is the program to compare with, `PUBLISHED` for a figure of others that is quoted, `LOWERED` for our own of
    the same graph lowered, `IN_PLACE` for numpy that writes into one array, `IN_PROCESS` for the same session without
    worker processes, `ROOFLINE` for times of ops by a datasheet, `POOL` for the same calls in processes of this
    machine, or "".
    """

    key: str
    peer: str
    promise: Promise | None
    measure: Callable[[Bench], Awaitable[Measured]]
    unit: str = "s"  # or "B", "images/s"


@dataclass(frozen=True, slots=True)
class Row:
    """A case and its figures."""

    case: Case
    measured: Measured

    @property
    def is_speed_up(self) -> bool:
        """Whether the ratio is peer / ours."""
        return self.case.promise is not None and self.case.promise.kind is Kind.SPEED_UP

    def ratio(self, *, cpu: bool = False) -> float | None:
        """Ours / peer, or peer / ours where the promise is a speed-up; for limits, ours in the unit of the row."""
        ours, peer = self.measured.ours, self.measured.peer
        mine = ours.by(cpu=cpu)
        if self.case.promise is not None and self.case.promise.kind is Kind.LIMIT:
            return mine
        if peer is None or mine <= 0 or peer.by(cpu=cpu) <= 0:
            return None
        other = peer.by(cpu=cpu)
        return other / mine if self.is_speed_up else mine / other

    def verdict(self, *, cpu: bool = False) -> str:
        """ "aim", "must" or "below" for what was reached; "" where there is nothing to judge."""
        promise, ratio = self.case.promise, self.ratio(cpu=cpu)
        if promise is None or ratio is None:
            return ""
        sign = 1 if promise.kind is Kind.SPEED_UP else -1
        if promise.aim is not None and sign * ratio >= sign * promise.aim:
            return "aim"
        return "must" if sign * ratio >= sign * promise.must else "below"
