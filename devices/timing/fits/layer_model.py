"""What fits of whole layers share: numbers by kind of layer, a peak rate, and the ranges of sizes they were fitted to.

    AttentionModel      numbers by direction: latency, rate, ...        [fits.attention.fwd]
    GroupedModel        numbers by stage: latency, bandwidth, ...       [fits.grouped.bwd_grad_w]

A subclass says which kinds, sizes and numbers there are, and how long layers of one kind take.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ....graph.arrays import Floats
from .layers import (
    WIDENING,
    SizeRanges,
    date_of,
    octaves_outside,
    read_numbers,
    read_ranges,
    with_interval,
    write_numbers,
    write_ranges,
)
from .prediction import Prediction
from .sourced import SourcedTable, Unit, write


class Layers(Protocol):
    """Layers in columns, one a row."""

    def __len__(self) -> int:
        """The number of rows."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each."""

    @property
    def sizes(self) -> Mapping[str, NDArray[np.int64]]:
        """What the time depends on."""

    @property
    def flops(self) -> Floats:
        """Operations by row."""

    def where(self, rows: NDArray[Any]) -> Self:
        """Some of the rows, by number or by a mask."""


class Numbers(Protocol):
    """The fitted numbers of one kind, in the order of their units."""

    @property
    def spread(self) -> float:
        """Half of the 80 % interval in log time."""

    def __iter__(self) -> Iterator[float]:
        """Each of them."""


L = TypeVar("L", bound=Layers)
N = TypeVar("N", bound=Numbers)


@frozen(eq=False)
class LayerModel(ABC, Generic[L, N]):
    """Numbers by kind, the peak rate that caps them, and the ranges of sizes that they were fitted to."""

    KINDS: ClassVar[Sequence[str]]
    SIZES: ClassVar[Sequence[str]]
    """what ranges are of"""
    UNITS: ClassVar[Mapping[str, Unit]]
    """by name of each number its unit"""
    MAKE: ClassVar[Callable[..., Any]]  # Any: a class variable cannot be of type N
    """makes the numbers of one kind from as many as there are units"""
    MOST_SHARE: ClassVar[float] = 1.0
    """of the peak"""

    numbers: Mapping[str, N]
    peak_flops_per_s: float
    ranges: SizeRanges
    source: str = ""
    date: str = ""

    @abstractmethod
    def time_ns(self, kind: str, layers: L) -> Floats:
        """Times by row of layers of one kind, not capped."""

    def least_ns(self, layers: L, peak_flops_per_s: float | None = None) -> Floats:
        """Times at `MOST_SHARE` of a peak rate, the model's own unless given."""
        return layers.flops * 1e9 / (self.MOST_SHARE * (peak_flops_per_s or self.peak_flops_per_s))

    def predict(self, layers: L) -> Prediction:
        """Times of bf16 layers with their 80 % intervals, which widen outside of the fitted ranges."""
        time_ns, half = np.empty(len(layers)), np.empty(len(layers))
        kinds = np.array(layers.kinds)
        for kind in sorted(set(layers.kinds)):
            of = kinds == kind
            time_ns[of] = self.time_ns(kind, layers.where(of))
            half[of] = self.numbers[kind].spread
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
        outer.only(["peak", *(f"range_{name}" for name in cls.SIZES), *cls.KINDS])
        numbers = {name: cls.MAKE(*read_numbers(outer.inner(name), cls.UNITS)) for name in cls.KINDS}
        peak = outer.number("peak", "FLOP/s")
        return cls(numbers, peak, read_ranges(outer, cls.SIZES), outer.source("peak"), date_of(table["peak"]))
