"""What a swept function may return, and how it is called where it runs.

    computed(cost, {"gpus": 8})       ComputedRow({"days": 46.6, "fits": True}, None)       or, where it fails,
                                      ComputedRow(None, "ValueError: no such GPU")

A number is the result `value`; a mapping has numbers and texts by name, and None for what a point does not have.
Numbers may be numpy's. An exception, or anything else that is returned, is the error of that row, made a text where the
function runs, since not every exception can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import NamedTuple

from ...errors import InvalidArgumentError, PartitaError, shown
from .axes import AxisValue

ResultValue = str | int | float | bool | None
VALUE, ERROR, HASH = "value", "error", "hash"
"""columns of every table beside those of axes and mappings"""


class ComputedRow(NamedTuple):
    """The results of a point by name; or None, and the error."""

    results: dict[str, ResultValue] | None
    error: str | None


def computed(function: Callable[..., object], axes: Mapping[str, AxisValue]) -> ComputedRow:
    """Calls a function for a point."""
    try:
        return ComputedRow(checked_results(function(**axes), axes), None)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a point raises is the error of its row
        return ComputedRow(None, error_text(error))


def error_text(error: BaseException) -> str:
    """An error as rows have it, on one line."""
    text = str(error) if isinstance(error, PartitaError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def checked_results(returned: object, axes: Collection[str]) -> dict[str, ResultValue]:
    """The results by name; InvalidArgumentError for what is no number and no mapping, and for names that are taken."""
    if not isinstance(returned, Mapping):
        number = _result(returned)
        if number is None or isinstance(number, str):
            raise InvalidArgumentError(
                f"the function returned {shown(returned)}; return a number, or a mapping of numbers and texts"
            )
        return checked_results({VALUE: number}, axes)
    if not returned:
        raise InvalidArgumentError("the function returned an empty mapping; return a number or text by each name")
    results: dict[str, ResultValue] = {}
    for name, value in returned.items():
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"the function returned a mapping with the name {shown(name)}; names are texts")
        if name in axes or name in (ERROR, HASH):
            raise InvalidArgumentError(f"the function returned {name!r}, which is a column already; rename it")
        results[name] = _result(value, name)
    return results


def _result(value: object, name: str | None = None) -> ResultValue:
    if not isinstance(value, str | int | float | None):
        item = getattr(value, "item", None)  # of a number of numpy, or an array with one
        value = item() if callable(item) and getattr(value, "size", 1) == 1 else value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if name is None:
        return None
    raise InvalidArgumentError(f"the function returned {shown(value)} as {name!r}; give a number or a text")
