"""Points of a sweep whose function is a command: it runs where the point does, and numbers of its JSON are the row.

The command's own function runs, not a program: nothing is printed, and its document is read as it is.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from ...errors import InvalidArgumentError, NotFoundError
from ...graph.suggestions import suggestion
from ..commands.failure import ConfigurationError
from ..commands.screen import kept_documents
from ..interrupts import Interrupts
from ..swept_commands import SWEPT
from .axes import AxisValue, SweepAxes, plain_value
from .document_values import named_paths, value_at
from .flag_axes import FlagNames
from .functions import SweptFunction
from .points import text_hash
from .results import ResultValue

_PLACE = re.compile(r"\{([^{}]*)\}")  # of the value of an axis, in the name of an output
_TRAINED = (
    *("step_ms", "step_ms_low", "step_ms_high", "simulated_step_ms", "tokens_per_s", "mfu", "exposed_comm_ms"),
    *("reserved_gib", "dp", "tp", "pp", "cp", "ep", "microbatches", "zero", "recompute", "days", "usd_per_run"),
)
_SERVED = (
    "prefill_ms",
    "decode_ms",
    "tokens_per_s",
    "tp",
    "pp",
    "ep",
    "batch",
    "allocated_gib",
    "usd_per_million_tokens",
)
_SIMULATED = (
    *("makespan_ns", "low_ns", "high_ns", "dependency_bound_ns", "tokens_per_s", "fits"),
    *("memory.*.peak_bytes", "flops", "transferred_bytes"),
)
USUAL_RESULTS = {
    "plan": tuple(f"plans.0.{name}" for name in dict.fromkeys((*_TRAINED, *_SERVED))),
    "rewrite": ("nodes",),
    "simulate": _SIMULATED,
    "workload": (*_SIMULATED, "nodes"),
}
"""by command the paths that become columns where the file names none, as far as a document has them"""


@frozen
class CommandPoint:
    """What all points of a sweep have in common: the command, flags by name, and columns by path."""

    command: str
    flags: Mapping[str, AxisValue]
    results: Mapping[str, str]
    """empty for the usual ones"""
    folder: str
    """that of the process that drives the sweep, to which paths are relative"""

    def values(self, axes: Mapping[str, AxisValue]) -> dict[str, AxisValue]:
        """The flags of a point, with the values of its axes in the names of outputs."""
        values = {**self.flags, **axes}
        for name, text in FlagNames(self.command).outputs(values):
            values[name] = _PLACE.sub(partial(_placed, axes, name), text)
        return values


def _placed(axes: Mapping[str, AxisValue], flag: str, place: re.Match[str]) -> str:
    if place[1] not in axes:
        raise InvalidArgumentError(f"{flag}: there is no axis {place[1]!r}{suggestion(place[1], axes)}")
    return str(axes[place[1]]).replace("/", "_")


def command_row(point: CommandPoint, **axes: AxisValue) -> dict[str, ResultValue]:
    """Runs the command for the values of the axes; its results by column. Raises as the command."""
    names, values = FlagNames(point.command), point.values(axes)
    if Path.cwd() != Path(point.folder):
        values = names.absolute(values, Path(point.folder))
    with tempfile.TemporaryDirectory() as scratch:
        output = names.missing_output(values)
        if output is not None:  # what the command writes is not asked for, only what it says of it
            values[output] = str(Path(scratch) / "graph.pb")
        document = _document([point.command, "--json", *names.arguments(values)])
    if point.results:
        return {column: value_at(document, path) for column, path in point.results.items()}
    return _usual_results(document, USUAL_RESULTS[point.command], axes)


def _document(arguments: list[str]) -> object:
    """What the command prints with --json."""
    with kept_documents() as documents:
        try:
            # Not by `main`, which makes an error of Ctrl-C that a row would keep.
            with SWEPT.make_context("partita", arguments, obj=Interrupts()) as context:
                SWEPT.invoke(context)
        except click.ClickException as error:
            raise ConfigurationError(error.format_message()) from error
    return documents[-1]


def _usual_results(document: object, paths: Iterable[str], axes: Mapping[str, AxisValue]) -> dict[str, ResultValue]:
    found: dict[str, ResultValue] = {}
    for column, path in named_paths(tuple(paths), axes).items():
        try:
            found[column] = value_at(document, path)
        except NotFoundError:
            continue
    return found


def swept_command(point: CommandPoint, axes: SweepAxes) -> SweptFunction:
    """The function of a sweep of a command, after its flags have been checked for each value of each axis.

    Raises ConfigurationError for values that click refuses, InvalidArgumentError for flags of other kinds, and for
    files to write that several points would write.
    """
    names = FlagNames(point.command)
    for values in map(point.values, axes.single_changes()):
        output = names.missing_output(values)
        names.check(values if output is None else {**values, output: "graph.pb"})
    _check_outputs(names, point, axes)
    flags = sorted((name, plain_value(value)) for name, value in point.flags.items())
    code = text_hash(repr([point.command, flags, sorted(point.results.items())]))
    call: Any = partial(command_row, point)  # Any: its keywords are the axes
    files = partial(_files, point)
    return SweptFunction(call, f"partita {point.command}", code, files)


def _files(point: CommandPoint, axes: Mapping[str, AxisValue]) -> Iterable[Path]:
    return FlagNames(point.command).paths(point.values(axes))


def _check_outputs(names: FlagNames, point: CommandPoint, axes: SweepAxes) -> None:
    """Each point has to write files of its own."""
    first = next(axes.single_changes())
    if not [*names.outputs(point.values(first))]:
        return
    seen: set[str] = set()
    for values in map(point.values, axes.points()):
        for name, path in names.outputs(values):
            if path in seen:
                example = f"graph_{{{axes.names[0]}}}.pb"
                raise InvalidArgumentError(f"{name}: several points write {path!r}; put axes into it: {example!r}")
            seen.add(path)
