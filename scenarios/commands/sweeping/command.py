"""`partita sweep`: a command for each point of the axes of a file, and the table of what it said.

All that can be checked is checked before the first point: flags and their values, outputs, the file of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....errors import RequestError
from ...executors.chosen import ExecutorChoice
from ...report.page.report import checked_path
from ...sweeps.command_points import swept_command
from ...sweeps.sweep import run_sweep
from ...sweeps.sweep_file import read_sweep
from ...sweeps.table import SweepTable, cell_text
from ...sweeps.table_files import json_document, parquet_package
from ..failure import RUN_FAILED, ConfigurationError, configuring
from ..outputs import check_outputs
from ..screen import Screen
from .where import opened_executor

_SUFFIXES = (".csv", ".json", ".parquet")


@dataclass(frozen=True, slots=True)
class SweepFlags:
    """The flags of the command; `command` is the line that a report shows."""

    file: Path
    resume: Path | None = None
    out: Path | None = None
    report: Path | None = None
    command: str = ""

    def check(self) -> None:
        """ConfigurationError for a file that cannot be written."""
        outputs = {"--out": self.out, "--report": self.report, "--resume": self.resume}
        check_outputs(outputs, {"FILE": self.file})
        if self.out is not None and self.out.suffix.lower() not in _SUFFIXES:
            raise ConfigurationError(f"--out: {str(self.out)!r} is no table; let it end in {', '.join(_SUFFIXES)}")
        with configuring("--out"):
            if self.out is not None and self.out.suffix.lower() == ".parquet":
                parquet_package()
        with configuring("--report"):
            if self.report is not None:
                checked_path(self.report)


def sweep(flags: SweepFlags, where: ExecutorChoice, as_json: bool) -> int:
    """Prints the table of a sweep; returns the exit code: 1 where every row has an error.

    Raises ConfigurationError for a wrong file, flag or executor.
    """
    screen = Screen()
    flags.check()
    with configuring():
        where.check()
        described = read_sweep(flags.file)
        function = swept_command(described.point, described.axes)
    with screen.working("sweeping") as on_progress, opened_executor(where) as executor:
        try:
            table = run_sweep(function, described.axes, executor=executor, resume=flags.resume, on_progress=on_progress)
        except RequestError as error:  # a file of rows, or one that a flag names; that the executor is gone is none
            raise ConfigurationError(str(error)) from error
    _write(table, flags, function.name, screen)
    if as_json:
        screen.json({"command": described.point.command, "failed": len(table.failed), **json_document(table)})
    else:
        _show(table, flags, function.name, screen)
    return RUN_FAILED if len(table.failed) == len(table) else 0


def _write(table: SweepTable, flags: SweepFlags, name: str, screen: Screen) -> None:
    if flags.out is not None:
        with screen.working(f"writing {flags.out.name}"), configuring("--out"):
            writers = dict(zip(_SUFFIXES, (table.to_csv, table.to_json, table.to_parquet), strict=True))
            writers[flags.out.suffix.lower()](flags.out)
    if flags.report is not None:
        with screen.working(f"writing {flags.report.name}"), configuring("--report"):
            title = f"a sweep of {name}"
            table.to_report(flags.report, title=title, subtitle=flags.file.name, command=flags.command)


def _show(table: SweepTable, flags: SweepFlags, name: str, screen: Screen) -> None:
    failed = f", {len(table.failed):,} with an error" if table.failed else ""
    screen.line(f"{name}: {len(table):,} points{failed}")
    columns = table.columns if table.failed else table.columns[:-1]
    rows = [[cell_text(cell) for cell in row[: len(columns)]] for row in table.cells()]
    screen.table(columns, rows, left=len(table.axes))
    if flags.out is not None:
        screen.line(f"table: {flags.out}")
    if flags.report is not None:
        screen.line(f"report: {flags.report}, to be opened in a browser")
