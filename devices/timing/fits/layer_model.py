"""What fits of whole layers share: numbers by kind of layer, a peak rate, and the ranges of sizes they were fitted to.

    AttentionModel      numbers by direction: latency, rate, ...        [fits.attention.fwd]
    GroupedModel        numbers by stage: latency, bandwidth, ...       [fits.grouped.bwd_grad_w]

A subclass says which columns its layers have, and which numbers there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ....graph.arrays import Flags, Floats, Numbers
from .layers import (
    WIDENING,
    SizeRanges,
    counts,
    date_of,
    octaves_outside,
    one_of,
    read_numbers,
    read_ranges,
    with_interval,
    write_numbers,
    write_ranges,
)
from .prediction import Prediction
from .sourced import SourcedTable, Unit, write


class LayerColumns(ABC):
    """Layers in columns, one a row: the kind of each, and its sizes by name.

    A subclass says what a kind is called ("direction"), which kinds there are, and the names of the sizes.
    """

    KIND: ClassVar[str]
    KINDS: ClassVar[Sequence[str]]
    COLUMNS: ClassVar[Sequence[str]]

    def __init__(self, kinds: Sequence[str], **columns: Sequence[int] | NDArray[Any]) -> None:
        """InvalidArgumentError for a wrong kind or size."""
        self.kinds = one_of(kinds, self.KINDS, self.KIND)
        self.columns: dict[str, Numbers] = {name: counts(columns[name], name, len(kinds)) for name in self.COLUMNS}

    def __len__(self) -> int:
        return len(self.kinds)

    def of_kind(self, kind: str) -> Flags:
        """Which rows are of a kind."""
        return np.array([each == kind for each in self.kinds], dtype=np.bool_)

    def where(self, rows: NDArray[Any]) -> Self:
        """Some of the rows, by number or by a mask."""
        kinds = tuple(np.array(self.kinds, dtype=object)[rows])
        return type(self)(kinds, **{name: column[rows] for name, column in self.columns.items()})

    @property
    @abstractmethod
    def sizes(self) -> Mapping[str, Numbers]:
        """What the time depends on."""

    @property
    @abstractmethod
    def flops(self) -> Floats:
        """Operations by row, a multiply-add as two."""

    @property
    @abstractmethod
    def bytes(self) -> Floats:
        """Bytes read and written, by row."""


class FittedNumbers(Protocol):
    """The fitted numbers of one kind, in the order of their units."""

    @property
    def rate_flops_per_s(self) -> float:
        """The rate of many operations."""

    @property
    def spread(self) -> float:
        """Half of the 80 % interval in log time."""

    def __iter__(self) -> Iterator[float]:
        """Each of them."""

    def time_ns(self, layers: Any, ranges: SizeRanges) -> Floats:  # Any: columns of the sort that the numbers are of
        """Times by row, not capped; `ranges` are those of the sizes that the numbers were fitted to."""


L = TypeVar("L", bound=LayerColumns)
N = TypeVar("N", bound=FittedNumbers)


@frozen(eq=False)
class LayerModel(Generic[L, N]):
    """Numbers by kind, the peak rate that caps them, and the ranges of sizes that they were fitted to."""

    LAYERS: ClassVar[type[LayerColumns]]
    SIZES: ClassVar[Sequence[str]]
    """what ranges are of"""
    UNITS: ClassVar[Mapping[str, Unit]]
    """by name of each number its unit"""
    MAKE: ClassVar[Callable[..., Any]]  # Any: a class variable cannot be of type N
    """makes the numbers of one kind from as many as there are units"""
    MOST_SHARE: ClassVar[float] = 1.0
    """of the peak"""
    LATENCY_POWER: ClassVar[float] = 1.0
    """of the ratio of rates with which what is no operations grows on another device"""

    numbers: Mapping[str, N]
    peak_flops_per_s: float
    ranges: SizeRanges
    source: str = ""
    date: str = ""

    def least_ns(self, layers: L, peak_flops_per_s: float | None = None) -> Floats:
        """Times at `MOST_SHARE` of a peak rate, the model's own unless given."""
        return layers.flops * 1e9 / (self.MOST_SHARE * (peak_flops_per_s or self.peak_flops_per_s))

    def operations_share(self, layers: L, time_ns: Floats) -> Floats:
        """The share of those times that the operations alone would take, by row."""
        rates = np.array([self.numbers[kind].rate_flops_per_s for kind in layers.kinds])
        return np.asarray(np.minimum(layers.flops * 1e9 / rates / time_ns, 1.0))

    def predict(self, layers: L) -> Prediction:
        """Times of bf16 layers with their 80 % intervals, which widen outside of the fitted ranges."""
        time_ns, half = np.empty(len(layers)), np.empty(len(layers))
        for kind in sorted(set(layers.kinds)):
            of, numbers = layers.of_kind(kind), self.numbers[kind]
            time_ns[of] = numbers.time_ns(layers.where(of), self.ranges)
            half[of] = numbers.spread
        half *= 1 + WIDENING * octaves_outside(layers.sizes, self.ranges)
        return with_interval(np.maximum(time_ns, self.least_ns(layers)), half)

    def to_table(self) -> dict[str, Any]:
        """The table of a calibration file: a table of sourced numbers by kind."""
        tables = {
            kind: write_numbers(list(numbers), self.UNITS, source=self.source, date=self.date)
            for kind, numbers in self.numbers.items()
        }
        peak = write(self.peak_flops_per_s, "FLOP/s", source=self.source, date=self.date)
        return {"peak": peak, **write_ranges(self.ranges), **tables}

    @classmethod
    def from_table(cls, table: Mapping[str, Any], where: str) -> Self:
        """The model that `to_table` wrote; InvalidArgumentError names `where` and the number that is wrong."""
        outer = SourcedTable(table, where)
        kinds = cls.LAYERS.KINDS
        outer.only(["peak", *(f"range_{name}" for name in cls.SIZES), *kinds])
        numbers = {kind: cls.MAKE(*read_numbers(outer.inner(kind), cls.UNITS)) for kind in kinds}
        peak = outer.number("peak", "FLOP/s")
        return cls(numbers, peak, read_ranges(outer, cls.SIZES), outer.source("peak"), date_of(table["peak"]))
