"""What models of whole layers share: a soft maximum, ranges of sizes, intervals, and tables of numbers.

soft_maximum(90_000, 120_000, 2.0)      150_000: near where both meet the time is longer than either
soft_maximum(90_000, 900_000, 2.0)      904_489: far from there the longer one speaks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats
from ..costs.source import Provenance
from .prediction import Prediction
from .sourced import SourcedTable, Unit, write

LayerSizes = Mapping[str, NDArray[Any]]  # Any: integers or floats of every width
SizeRanges = Mapping[str, tuple[int, int]]
"""the least and the greatest of each size among the rows of a fit"""
WIDENING = 0.25
"""share by which each doubling outside the fitted range widens the interval, of products too"""


def soft_maximum(left: Floats, right: Floats, sharpness: float) -> Floats:
    """(left^p + right^p)^(1/p), by row; p is the sharpness, at least 1, and both sides are above 0."""
    return np.asarray(np.exp(np.logaddexp(sharpness * np.log(left), sharpness * np.log(right)) / sharpness))


def ranges_of(sizes: LayerSizes) -> dict[str, tuple[int, int]]:
    """The range of each size."""
    return {name: (int(column.min()), int(column.max())) for name, column in sizes.items()}


def octaves_outside(sizes: LayerSizes, ranges: SizeRanges) -> Floats:
    """By row, how many doublings its sizes lie outside the ranges, summed over the sizes."""
    outside = np.zeros(len(next(iter(sizes.values()))))
    for name, (least, most) in ranges.items():
        size = np.log2(np.asarray(sizes[name], dtype=np.float64))
        outside += np.maximum(np.log2(least) - size, 0.0) + np.maximum(size - np.log2(most), 0.0)
    return outside


def with_interval(time_ns: Floats, half: Floats, provenance: Provenance = "fitted") -> Prediction:
    """Times with an interval of `half` on both sides in log time."""
    return Prediction(time_ns, time_ns * np.exp(-half), time_ns * np.exp(half), provenance)


def one_of(given: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """The texts; InvalidArgumentError for one that is not among those known."""
    for text in given:
        if text not in known:
            raise InvalidArgumentError(f"{what} {text!r} is not known; it must be one of {', '.join(known)}")
    return tuple(given)


def counts(values: Sequence[int] | NDArray[Any], what: str, rows: int) -> NDArray[np.int64]:
    """A column of whole numbers from 1; InvalidArgumentError for others and for another number of rows."""
    column = np.asarray(values)
    if column.shape != (rows,) or column.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{what} = {values!r} must be {rows} whole numbers, one a row")
    if rows and column.min() < 1:
        raise InvalidArgumentError(f"{what} = {column.min()} must be at least 1")
    return column.astype(np.int64)


def date_of(value: object) -> str:
    """The date of a sourced number, "" where the file has none."""
    return str(value.get("date", "")) if isinstance(value, Mapping) else ""


def write_numbers(
    numbers: Sequence[float], units: Mapping[str, Unit], *, source: str, date: str
) -> dict[str, dict[str, str]]:
    """Fitted numbers as a table, their names and units in order."""
    return {
        name: write(value, unit, source=source, date=date)
        for (name, unit), value in zip(units.items(), numbers, strict=True)
    }


def read_numbers(table: SourcedTable, units: Mapping[str, Unit]) -> list[float]:
    """What `write_numbers` wrote; InvalidArgumentError for an unknown key, and unless all numbers are above 0."""
    table.only(list(units))
    numbers = [table.number(name, unit) for name, unit in units.items()]
    for name, number in zip(units, numbers, strict=True):
        if number <= 0:
            raise InvalidArgumentError(f"{table.where}: {name}: {number} must be above 0; calibrate the device again")
    return numbers


def write_ranges(ranges: SizeRanges) -> dict[str, list[int]]:
    """Ranges as a file has them: {"range_m": [128, 9832]}."""
    return {f"range_{name}": list(pair) for name, pair in ranges.items()}


def read_ranges(table: SourcedTable, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """What `write_ranges` wrote."""
    return {name: _range(table, f"range_{name}") for name in names}


def _range(table: SourcedTable, key: str) -> tuple[int, int]:
    pair = table.table.get(key)
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(end) is int for end in pair):
        raise InvalidArgumentError(f"{table.where}: {key} = {pair!r} must be the least and the greatest size")
    if not 1 <= pair[0] <= pair[1]:
        raise InvalidArgumentError(f"{table.where}: {key} = {pair!r} must begin with the smaller, at least 1")
    return pair[0], pair[1]
