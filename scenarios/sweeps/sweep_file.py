"""The file of a sweep, in TOML: a command, its flags, axes, conditions and results.

    command = "plan"
    where = ["split.tp * split.pp <= 16"]
    results = ["plans.0.step_ms", "plans.0.mfu"]            # or a table [results] of columns and paths

    [flags]
    family = "llama"
    global-batch = 512

    [axes]
    gpus = ["H100-SXM:16", "H100-SXM:32"]
    split.tp = { from = 1, to = 8, factor = 2 }             # or step = 2, points = 4, points = 4 with geometric = true
    split.pp = [1, 2, 4]

With [[axes]] in place of [axes], once or several times, the lists of one table go together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from ...devices.tables import check_keys, naming, parse_toml, tables, texts
from ...errors import InvalidArgumentError, shown
from .axes import SweepAxes, axis_value
from .command_points import CommandPoint
from .document_values import named_paths
from .flag_axes import FlagNames
from .ranges import geometric_values, linear_values

_KEYS = ("command", "where", "results", "flags", "axes")
_RANGE = ("from", "to", "step", "factor", "points", "geometric")


@frozen
class SweepFile:
    """What a file says."""

    point: CommandPoint
    axes: SweepAxes


def read_sweep(path: Path) -> SweepFile:
    """The sweep of a file. InvalidArgumentError for what cannot be one, OSError where it cannot be read."""
    where = str(path)
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{where}: this is not TOML, which is UTF-8: {error}") from None
    return parse_sweep(parse_toml(text, where), where, str(Path.cwd()))


def parse_sweep(table: Mapping[str, Any], where: str, folder: str) -> SweepFile:  # Any: what TOML holds
    """The sweep of a table; `where` begins errors, `folder` is what paths are relative to."""
    check_keys(table, _KEYS, where)
    command = table.get("command")
    if not isinstance(command, str):
        raise InvalidArgumentError(f'{where}: command is missing; write command = "simulate", or another one')
    with naming(where):
        names = FlagNames(command)
        flags = {names.checked(name): axis_value(name, value) for name, value in _flat(_table(table, "flags"))}
        axes = SweepAxes(_axes(table, names, where), where=texts(table, "where", where))
        for name in axes.names:
            if name in flags:
                raise InvalidArgumentError(f"{name} is a flag and an axis; leave one out")
        point = CommandPoint(command, flags, _results(table, axes, where), folder)
    return SweepFile(point, axes)


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:  # Any: what TOML holds
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise InvalidArgumentError(f"{key} must be a table; write [{key}], and a line for each")
    return found


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:  # Any: what TOML holds
    """The entries of a table, names with dots for those of tables in it; a range is a value."""
    for name, value in table.items():
        if isinstance(value, Mapping) and "from" not in value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _axes(table: Mapping[str, Any], names: FlagNames, where: str) -> list[dict[str, list[Any]]]:  # Any: likewise
    """The groups of axes that go together."""
    given = table.get("axes", {})
    if isinstance(given, Mapping):
        return [{names.checked(name): _axis(name, value)} for name, value in _flat(given)]
    groups = tables(table, "axes", where)
    return [{names.checked(name): _axis(name, value) for name, value in _flat(group)} for group in groups]


def _axis(name: str, value: Any) -> list[Any]:  # Any: likewise
    """A list, or a table of a range."""
    if isinstance(value, list):
        return value
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"axis {name!r} must be a list or a range; write [{shown(value)}] for one value")
    check_keys(value, _RANGE, f"axis {name!r}")
    with naming(f"axis {name!r}"):
        if "to" not in value:
            raise InvalidArgumentError("a range needs two ends; add to")
        start, stop, points = value["from"], value["to"], value.get("points")
        if "factor" in value or value.get("geometric"):
            if "step" in value:
                raise InvalidArgumentError("a range has a step or a factor; leave one out")
            return geometric_values(start, stop, factor=value.get("factor"), points=points)
        return linear_values(start, stop, step=value.get("step"), points=points)


def _results(table: Mapping[str, Any], axes: SweepAxes, where: str) -> dict[str, str]:  # Any: likewise
    """Paths by column."""
    given = table.get("results", [])
    if not isinstance(given, Mapping):
        return named_paths(texts(table, "results", where), axes.names)
    for column, path in given.items():
        if not isinstance(path, str):
            raise InvalidArgumentError(f"results: {column} = {shown(path)} must be a path, such as 'plans.0.step_ms'")
        if column in axes.names:
            raise InvalidArgumentError(f"results: {column!r} is an axis; give the column another name")
    return dict(given)
