"""The command that writes the graph of a training step as several devices, or less memory, need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .help import Command
from .options import OUTPUT, json_option, rewriting_options
from .parallel_options import parallel_options


@click.command(cls=Command)
@rewriting_options
@click.option(
    "--out", type=OUTPUT, required=True, metavar="FILE.pb", help="Write the graph; text if it ends in .pbtxt."
)
@parallel_options
@json_option
def rewrite(out: Path, as_json: bool, **flags: Any) -> None:  # Any: flags differ in type
    """Make the training step GRAPH parallel, or smaller in memory, and write it.

    Activations are computed again first, then the step is cut into a pipeline, then replicated; docs/parallel.md says
    what each does. Replica r has the devices r * P to r * P + P - 1, of the GPUs if there are any, else of the CPUs.
    Of a SavedModel the graph of a signature is written. The same flags on run, simulate, explain, show and partition
    rewrite the graph that these commands take.

    \b
    Example:
      partita rewrite step.pb --batch x,labels --loss loss --replicate 8 --zero 1 --devices gpu:8 --out parallel.pb
    """
    from .commands.request import Request
    from .commands.rewrite import rewrite as execute

    execute(Request(**flags), out, as_json)
