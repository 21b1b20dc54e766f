"""Single values of the JSON document of a command, by paths.

    document = {"makespan_ns": 7, "devices": [{"peak_memory_bytes": 3}, {"peak_memory_bytes": 5}]}
    value_at(document, "makespan_ns")                       7
    value_at(document, "devices.0.peak_memory_bytes")       3
    value_at(document, "devices.*.peak_memory_bytes")       5       the largest of all

A path has the keys of objects and the places of lists, from 0 on. `named_paths` says what its column is called.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.suggestions import suggestion
from .results import ResultValue

_ALL = "*"


def named_paths(paths: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """Paths by column: the last key of each, or all of it where that is taken."""
    named: dict[str, str] = {}
    for path in paths:
        keys = [key for key in path.split(".") if key != _ALL and not key.isdecimal()]
        short = keys[-1] if keys else path
        named[path if short in named or short in taken else short] = path
    return named


def value_at(document: object, path: str) -> ResultValue:
    """The value at a path; None where JSON has null, or a list has no items.

    Raises NotFoundError for a path that leads nowhere, with the nearest key, and InvalidArgumentError for one that
    leads to an object or a list.
    """
    present: list[str | int | float] = []
    for value in _values_at(document, path.split("."), path):
        if isinstance(value, str | int | float):
            present.append(value)
        elif value is not None:
            raise InvalidArgumentError(f"{path!r} is {_said(value)}; name one of its values")
    if len(present) < 2:
        return present[0] if present else None
    numbers = [value for value in present if not isinstance(value, str)]
    if len(numbers) < len(present):
        raise InvalidArgumentError(f"{path!r} has texts, of which none is the largest; name one of them")
    return max(numbers)


def _values_at(value: object, keys: Sequence[str], path: str) -> list[object]:
    if not keys:
        return [value]
    key, rest = keys[0], keys[1:]
    if value is None:
        return []
    if isinstance(value, Mapping):
        if key not in value:
            raise NotFoundError(f"{path!r}: there is no {key!r}{suggestion(key, map(str, value))}")
        return _values_at(value[key], rest, path)
    if isinstance(value, list | tuple):
        if key == _ALL:
            return [found for item in value for found in _values_at(item, rest, path)]
        if not key.isdecimal() or int(key) >= len(value):
            raise NotFoundError(f"{path!r}: {key!r} is no place in a list of {len(value)}; write * for the largest")
        return _values_at(value[int(key)], rest, path)
    raise NotFoundError(f"{path!r}: there is nothing below {value!r}; leave {'.'.join(keys)!r} out")


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return f"an object with {', '.join(map(str, value))}"
    return "a list"
