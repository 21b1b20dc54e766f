"""The points of a sweep: values of axes in every combination, lists that go together, and conditions.

    {"gpus": [8, 16], "batch": [64, 128]}                      the product: 4 points, the last axis changes fastest
    [{"gpus": [8, 16]}, {"tp": [1, 2], "pp": [2, 1]}]          `tp` and `pp` go together: 2 times 2 points
    SweepAxes({"tp": [1, 2, 4], "pp": [1, 2, 4]}, where=["tp * pp <= 4"])           6 points of 9

A value is what JSON has (a text, a number, true, false, None), a list of these, or a `Path`, which stands for the
content of a file or a folder. The numbers of a list may be numpy's. No axis has a value twice, so no two points are
equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from ...errors import InvalidArgumentError, shown
from .conditions import PointCondition, parsed_condition

AxisScalar = str | int | float | bool | None | Path
AxisValue = AxisScalar | tuple[AxisScalar, ...]
GivenAxes = Mapping[str, Iterable[object]] | Sequence[Mapping[str, Iterable[object]]]


class _AxisGroup(NamedTuple):
    """Axes that go together; a row has a value for each."""

    names: tuple[str, ...]
    rows: tuple[tuple[AxisValue, ...], ...]


class SweepAxes:
    """The axes of a sweep and the conditions on its points.

    `axes` is a mapping of names to values, or a list of such mappings, each with lists that go together. `where` are
    conditions: texts such as "tp * pp <= gpus", or functions that take the axes as keywords. Raises
    InvalidArgumentError for values that are none, lists of different lengths, and names that are taken or unknown.
    """

    def __init__(self, axes: GivenAxes, *, where: Iterable[str | Callable[..., object]] = ()) -> None:
        groups = [{name: values} for name, values in axes.items()] if isinstance(axes, Mapping) else list(axes)
        self._groups = [_group(group) for group in groups]
        self.names = tuple(name for group in self._groups for name in group.names)
        """the axes, slowest first"""
        if not self.names:
            raise InvalidArgumentError("a sweep has no axis; give a mapping of names to lists of values")
        for place, name in enumerate(self.names):
            if name in self.names[:place]:
                raise InvalidArgumentError(f"axis {name!r} is given twice")
        self._conditions = [_condition(condition, self.names) for condition in _listed(where)]

    @classmethod
    def of(cls, axes: GivenAxes | SweepAxes) -> SweepAxes:
        """Axes as `sweep` takes them."""
        return axes if isinstance(axes, SweepAxes) else cls(axes)

    def points(self) -> Iterator[dict[str, AxisValue]]:
        """The points that meet all conditions, in order."""
        for rows in product(*(group.rows for group in self._groups)):
            point = dict(zip(self.names, (value for row in rows for value in row), strict=True))
            if all(condition(point) for condition in self._conditions):
                yield point

    def single_changes(self) -> Iterator[dict[str, AxisValue]]:
        """Points in which every value of every axis comes once, with the first values of the others: for checks."""
        first = [group.rows[0] for group in self._groups]
        for place, group in enumerate(self._groups):
            for row in group.rows[1 if place else 0 :]:
                values = [value for rows in (*first[:place], row, *first[place + 1 :]) for value in rows]
                yield dict(zip(self.names, values, strict=True))


def _group(given: Mapping[str, Iterable[object]]) -> _AxisGroup:
    columns = {_checked_name(name): _values(name, values) for name, values in given.items()}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgumentError(f"axes that go together must have equally many values, but {told}")
    rows = tuple(zip(*columns.values(), strict=True))
    seen: set[str] = set()
    for row in rows:
        text = json.dumps([plain_value(value) for value in row])
        if text in seen:
            raise InvalidArgumentError(f"{_of(columns)} the value {_shown_row(row)} twice; leave one out")
        seen.add(text)
    return _AxisGroup(tuple(columns), rows)


def _of(columns: Mapping[str, object]) -> str:
    names = ", ".join(map(repr, columns))
    return f"axis {names} has" if len(columns) == 1 else f"axes {names} have"


def _shown_row(row: Sequence[AxisValue]) -> str:
    return ", ".join(map(shown, row))


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{shown(name)} is no name of an axis; give a text")
    return name


def _values(name: str, values: object) -> list[AxisValue]:
    if isinstance(values, str | bytes | Mapping | Path) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"axis {name!r} must be a list of values, not {shown(values)}")
    checked = [axis_value(name, value) for value in values]
    if not checked:
        raise InvalidArgumentError(f"axis {name!r} has no value; give at least one")
    return checked


def axis_value(name: str, value: object) -> AxisValue:
    """A value of an axis, numbers of numpy made Python's; InvalidArgumentError for anything else."""
    if isinstance(value, list | tuple):
        return tuple(_scalar(name, item) for item in value)
    return _scalar(name, value)


def _scalar(name: str, value: object) -> AxisScalar:
    if value is not None and not isinstance(value, str | int | float | Path):
        item = getattr(value, "item", None)  # of a number of numpy
        value = item() if callable(item) else value
    if isinstance(value, float) and not isfinite(value):
        raise InvalidArgumentError(f"axis {name!r}: {value} is no value of an axis, as JSON has no such number")
    if value is None or isinstance(value, str | int | float | Path):
        return float(value) if isinstance(value, float) else value  # a float64 of numpy is a float, with another text
    raise InvalidArgumentError(
        f"axis {name!r}: {shown(value)} is no value of an axis; give texts, numbers, true or false, None, or Paths"
    )


def plain_value(value: AxisValue) -> object:
    """A value as JSON has it; a path is its text."""
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _listed(where: Iterable[str | Callable[..., object]]) -> list[str | Callable[..., object]]:
    return [where] if isinstance(where, str) or callable(where) else list(where)


def _condition(condition: str | Callable[..., object], names: Sequence[str]) -> PointCondition:
    if isinstance(condition, str):
        return parsed_condition(condition, names)
    return lambda point: bool(condition(**point))
