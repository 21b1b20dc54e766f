"""`partita report`: its arguments and flags.

As in `cli`, the command imports its own modules when it runs.
"""

from __future__ import annotations

from pathlib import Path

import click

from .help import Command, command_line
from .options import FILE, OUTPUT, json_option


@click.command(cls=Command)
@click.argument("file", type=FILE, metavar="FILE.timeline|RUN_METADATA.pb")
@click.option("--compare", "other", type=FILE, metavar="OTHER", help="Show another step beside it, node by node.")
@click.option("--out", type=OUTPUT, metavar="FILE.html", help="The page.  [default: FILE with that suffix]")
@json_option
def report(file: Path, other: Path | None, out: Path | None, as_json: bool) -> None:
    """Write a page of a step: where its time and memory go.

    FILE and OTHER are steps that --trace FILE.timeline has saved, or RunMetadata of real ones, as TensorFlow records
    them. A RunMetadata has the times of ops alone; the page says which of its panels have no data.

    \b
    Examples:
      partita report step.timeline
      partita report step.timeline --compare run_metadata.pb --out both.html
    """
    from .commands.reporting.command import report as execute

    execute(file, other, out, command_line(), as_json)
