"""What every reader of measurements returns: timed products, moves of bytes and collectives, layers, and refused rows.

    a table, a log or a trace     Measurements(products=(TimedProduct(...), ...), refused=(Refused("a.csv:7", "..."),))

Of whole layers a source gives no time, but the share of a stated rate that was reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

STATED_PEAK_FLOPS_PER_S = 2250e12
"""what shares of layers are of"""


class TimedProduct(NamedTuple):
    """A matrix product of two-byte elements and its time; `layout` is "TN", "NN", "NT" or "" where unknown."""

    m: int
    n: int
    k: int
    batch: int
    layout: str
    time_ns: float


class TimedMove(NamedTuple):
    """An op bound by memory: the bytes that it reads and writes, and its time."""

    size_bytes: int
    time_ns: float


class TimedCollective(NamedTuple):
    """A collective of so many ranks; the size is the output of an all-gather, else the buffer of a rank."""

    kind: str
    ranks: int
    size_bytes: int
    time_ns: float


class MeasuredLayer(NamedTuple):
    """A layer in bf16 and the share of `STATED_PEAK_FLOPS_PER_S` that it reached, of attention by its full square.

    The sizes are those of `Attentions.COLUMNS` or `GroupedProducts.COLUMNS`, the kind is a direction or a stage.
    """

    kind: str
    sizes: tuple[int, ...]
    share: float


class GivenMemory(NamedTuple):
    """Numbers of a kind of memory-bound op that a source gives instead of times, from so many of its rows."""

    kind: str
    bandwidth_bytes_per_s: int
    efficiency: float
    constant_ns: float
    rows: int


class Refused(NamedTuple):
    """A row that is not used: where it stands ("ops.csv:7"), and why."""

    where: str
    reason: str


MeasuredRow = TimedProduct | TimedMove | Refused
"""what one timed op gives"""


class Measurements(NamedTuple):
    """The rows of one or several sources."""

    products: tuple[TimedProduct, ...] = ()
    moves: tuple[TimedMove, ...] = ()
    collectives: tuple[TimedCollective, ...] = ()
    refused: tuple[Refused, ...] = ()
    attentions: tuple[MeasuredLayer, ...] = ()
    grouped: tuple[MeasuredLayer, ...] = ()
    memory: tuple[GivenMemory, ...] = ()

    @property
    def used(self) -> int:
        """Number of rows that are not refused."""
        layers = len(self.attentions) + len(self.grouped)
        given = sum(numbers.rows for numbers in self.memory)
        return len(self.products) + len(self.moves) + len(self.collectives) + layers + given


def joined(sources: Iterable[Measurements]) -> Measurements:
    """The rows of several sources, in their order."""
    every = list(sources)
    return Measurements(
        tuple(row for source in every for row in source.products),
        tuple(row for source in every for row in source.moves),
        tuple(row for source in every for row in source.collectives),
        tuple(row for source in every for row in source.refused),
        tuple(row for source in every for row in source.attentions),
        tuple(row for source in every for row in source.grouped),
        tuple(numbers for source in every for numbers in source.memory),
    )


def sorted_rows(rows: Iterable[MeasuredRow]) -> Measurements:
    """The rows of timed ops by their sort, each in its order."""
    every = list(rows)
    return Measurements(
        tuple(row for row in every if isinstance(row, TimedProduct)),
        tuple(row for row in every if isinstance(row, TimedMove)),
        (),
        tuple(row for row in every if isinstance(row, Refused)),
    )
