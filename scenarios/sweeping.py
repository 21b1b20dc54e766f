"""The command that runs another command for each point of some axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .executor_options import executor_options
from .help import Command, command_line
from .options import FILE, OUTPUT, json_option

if TYPE_CHECKING:
    from .executors.chosen import ExecutorChoice


@click.command(cls=Command)
@click.argument("file", type=FILE, metavar="FILE.toml")
@click.option(
    "--resume",
    type=OUTPUT,
    metavar="FILE",
    help="Write rows into this file as they come, and compute only those that it lacks, or has with an error.",
)
@click.option(
    "--out", type=OUTPUT, metavar="FILE", help="Write the table; the suffix says how: .csv, .json or .parquet."
)
@click.option(
    "--report",
    type=OUTPUT,
    metavar="FILE.html",
    help="Write a page of the table, with a chart of a result along an axis. It needs a browser, and no network.",
)
@executor_options("processes")
@json_option
def sweep(
    file: Path, resume: Path | None, out: Path | None, report: Path | None, where: ExecutorChoice, as_json: bool
) -> int:
    """Run a command for every point of the axes in FILE.toml, and print a table.

    The file names a command (simulate, plan, workload or rewrite), its flags, and axes: lists and ranges of values for
    any of its flags, in every combination, or together, as far as conditions allow. A row has the numbers that the
    command says with --json, or its error. docs/sweeps.md goes through it.

    \b
    Examples:
      partita sweep capacity.toml
      partita sweep capacity.toml --workers 4 --resume capacity.rows --out capacity.csv --report capacity.html
      partita sweep capacity.toml --address tcp://10.0.0.7:8786 --out capacity.parquet
    """
    from .commands.sweeping.command import SweepFlags, sweep as execute

    return execute(SweepFlags(file, resume, out, report, command_line()), where, as_json)
