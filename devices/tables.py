"""Reads tables of TOML files that people write: cluster files, calibrations, models of the catalog.

    table = parse_toml('latency = "5 us"', "rig.toml")
    quantity(table, "latency", parse_ns, "rig.toml")        5000
    check_keys(table, ["latncy"], "rig.toml")               rig.toml: unknown key 'latency'; did you mean 'latncy'?

Every error is an InvalidArgumentError that begins with the place, `where`: the file, the table in it, the key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import InvalidArgumentError, PartitaError
from ..graph.suggestions import suggestion


@contextmanager
def naming(where: str, wrong: type[PartitaError] = InvalidArgumentError) -> Iterator[None]:
    """Errors `wrong` of the body say where: they become InvalidArgumentErrors that begin with it."""
    try:
        yield
    except wrong as error:
        raise InvalidArgumentError(f"{where}: {error.message}") from None


def parse_toml(text: str, where: str) -> dict[str, Any]:  # Any: what TOML holds
    """The table of a text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"{where}: this is not TOML: {error}") from None


def check_keys(table: Mapping[str, object], allowed: Sequence[str], where: str) -> None:
    """InvalidArgumentError for the first key of `table` that is not allowed, with the nearest one that is."""
    for key in table:
        if key not in allowed:
            raise InvalidArgumentError(f"{where}: unknown key {key!r}{suggestion(key, allowed)}")


def tables(table: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """The tables [[key]] of a file, none if it has none."""
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise InvalidArgumentError(f"{where}: {key!r} must be a list of tables; write [[{key}]] with double brackets")
    return found


def texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """A list of names, empty if the table has none."""
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise InvalidArgumentError(f"{where}: {key} = {found!r} must be a list of names")
    return tuple(found)


def quantity(table: Mapping[str, Any], key: str, parse: Callable[[Any], int], where: str) -> int:
    """A number with a unit, 0 if the table has none; `parse` is a parser of `units`."""
    with naming(f"{where}: {key}"):
        return parse(table[key]) if key in table else 0


def without_sources(value: Any) -> Any:
    """What TOML holds, with every sourced value `{ value = "5 us", source = "...", date = "..." }` made its text."""
    if not isinstance(value, Mapping):
        return value
    return value["value"] if "value" in value else {key: without_sources(inner) for key, inner in value.items()}
