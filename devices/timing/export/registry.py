"""Exporters by the suffix of the file that they write: built-in, registered by a program, or of installed packages.

    register_exporter(Exporter(".txt", "makespan in words", lambda timeline, path: path.write_text(...)))
    exporter_for(Path("step.txt")).write(timeline, Path("step.txt"))

An installed package adds an exporter to the command line by an entry point in its pyproject.toml. The name is the
suffix; the value is a function like `Exporter.write`, and the first line of its docstring becomes `Exporter.format`:

    [project.entry-points."partita.exporters"]
    ".svg" = "my_package:write_picture"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .... import entry_points
from ....errors import AlreadyExistsError, InvalidArgumentError
from ..timeline import Timeline
from ..timeline_file import SUFFIX, write_timeline
from .chrome import write_chrome_trace
from .csv import write_csv
from .perfetto import write_perfetto
from .run_metadata import write_run_metadata

GROUP = "partita.exporters"


@dataclass(frozen=True, slots=True)
class Exporter:
    """Writes timelines to files that end in `suffix` (".json"); `format` describes them in a few words."""

    suffix: str
    format: str
    write: Callable[[Timeline, Path], None]


_EXPORTERS: dict[str, Exporter] = {}


def register_exporter(exporter: Exporter) -> None:
    """Adds an exporter; AlreadyExistsError when there is one for that suffix."""
    if exporter.suffix in _EXPORTERS:
        present = _EXPORTERS[exporter.suffix].format
        raise AlreadyExistsError(
            f"there is an exporter for files that end in {exporter.suffix!r} ({present}); choose another suffix"
        )
    _EXPORTERS[exporter.suffix] = exporter


def exporter_for(path: Path) -> Exporter:
    """The exporter for the suffix of a file; that of Chrome traces for a file without a suffix.

    Raises InvalidArgumentError, listing all suffixes, when there is no exporter. Installed packages are searched only
    for suffixes that are not registered yet.
    """
    suffix = path.suffix or ".json"
    if suffix not in _EXPORTERS:
        _load_installed(suffix)
    if suffix not in _EXPORTERS:
        known = ", ".join(f"{exporter.suffix} ({exporter.format})" for exporter in _EXPORTERS.values())
        others = [name for name in entry_points.names_of(GROUP) if name not in _EXPORTERS]
        raise InvalidArgumentError(
            f"no exporter writes files that end in {suffix!r}; there are {', '.join([known, *others])}"
        )
    return _EXPORTERS[suffix]


def _load_installed(suffix: str) -> None:
    found = entry_points.loaded(GROUP, suffix, "the exporter of files")
    if found is None:
        return
    if not callable(found.value):
        raise InvalidArgumentError(f"exporter {suffix!r}, {found.place!r}, is {found.value!r}; make it a function")
    register_exporter(Exporter(suffix, (found.value.__doc__ or found.place).partition("\n")[0], found.value))


for _exporter in (
    Exporter(".json", "Chrome trace", write_chrome_trace),
    Exporter(".csv", "one row an event", write_csv),
    Exporter(".pb", "RunMetadata", write_run_metadata),
    Exporter(".pftrace", "Perfetto trace", write_perfetto),
    Exporter(SUFFIX, "everything, to be opened again", write_timeline),
):
    register_exporter(_exporter)
