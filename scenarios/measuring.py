"""The commands about measurements: how far predictions are off, and fits to devices of one's own.

As in `cli`, a command imports its own module when it runs.
"""

from __future__ import annotations

from typing import Any

import click

from . import completion
from .help import Command
from .options import FILE, OUTPUT, json_option


@click.command(cls=Command)
@click.option("--fit", type=FILE, required=True, metavar="DIR", help="Folder of the measurements to fit to.")
@click.option("--test", type=FILE, metavar="DIR", help="Folder of the measurements to predict; times may be empty.")
@click.option(
    "--cross-validate",
    "folds",
    type=int,
    metavar="K",
    help="In place of --test: predict each of K parts of the --fit folder from the others.",
)
@click.option("--predictions", type=OUTPUT, metavar="DIR", help="Write a CSV per set; the folder is made if missing.")
@json_option
def validate(**flags: Any) -> None:  # Any: flags differ in type
    """Say how far predicted times are off, beside null models.

    Fits the models to the files of one folder and predicts those of another. docs/validation.md has the names and
    columns of the files. What no set reads is left out, and listed.

    \b
    Examples:
      partita validate --fit measured --test kept_apart --predictions predicted
      partita validate --fit measured --cross-validate 5
    """
    from .commands.validate import validate as execute

    execute(**flags)


@click.command(cls=Command)
@click.argument("sources", nargs=-1, required=True, type=FILE, metavar="SOURCE...")
@click.option(
    "--device",
    required=True,
    shell_complete=completion.devices,
    help="Name of the device in the catalog, or in --cluster.",
)
@click.option("--cluster", type=FILE, help="A cluster file whose inline spec describes the device.")
@click.option(
    "--write", "output", type=OUTPUT, required=True, metavar="FILE.toml", help="The calibration file to write."
)
@click.option("--date", metavar="YYYY-MM-DD", help="Date of the measurements, today unless given.")
@click.option("--collective", metavar="KIND", help="What logs of nccl-tests ran, where they do not say it.")
@click.option("--graph", type=FILE, metavar="FILE", help="The GraphDef that ran, for traces that have none.")
@json_option
def calibrate(**flags: Any) -> None:  # Any: flags differ in type
    """Fit the models of a device to measurements of it.

    A SOURCE is a CSV of op timings (op,shapes,dtype,latency_ms), the trace of a step (RunMetadata or StepStats in a
    file .pb, with its graph inside or as --graph), the text output of nccl-tests, or a table of products
    (system,m,n,k,latency_ms) or collectives (system,op_name,num_gpus,elements_fp16,latency_ms). Prints the rows that
    are used and refused, the fitted numbers with their 80 % intervals, and the error on rows that the fit has not seen
    beside that of the datasheet.

    \b
    Example:
      partita calibrate ops.csv all_reduce.log --device H100-SXM --write my_h100.toml
    """
    from .commands.calibrate import calibrate as execute

    execute(**flags)
