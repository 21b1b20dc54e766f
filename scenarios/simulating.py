"""The commands that say how long a step takes: of a graph in a file, and of a workload, which they build.

As in `cli`, a command imports its own module when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import completion
from .help import Command, command_line
from .options import (
    OUTPUT,
    choice_options,
    cost_options,
    device_options,
    json_option,
    model_options,
    order_options,
    placement_options,
    recv_epochs_option,
    report_option,
    tensorboard_option,
    trace_option,
    unknown_options,
)
from .parallel_options import parallel_options


@click.command(cls=Command)
@placement_options
@recv_epochs_option
@choice_options
@unknown_options
@cost_options
@order_options
@parallel_options
@json_option
@trace_option
@report_option
@tensorboard_option
def simulate(
    order: str | None,
    priorities: tuple[str, ...],
    as_json: bool,
    trace: Path | None,
    report: Path | None,
    tensorboard: Path | None,
    **flags: Any,  # flags differ in type
) -> int:
    """Say how long a step of GRAPH takes, without running it.

    Uses only shapes and the models of devices and links, so it needs no kernels, and values only if a shape depends on
    them. Prints the makespan, how busy each device is, its peak memory, and a timeline. Where the graph does not tell
    how often a loop runs or which branch is taken, an error lists the --trips and --branch to give. A step that does
    not fit in memory is timed as if it did, and ends with exit code 4.

    The shape of a feed is that of its file, of --shape, or of its placeholder.

    \b
    Examples:
      partita simulate model.pb --feeds batch.npz --target train --cluster cluster.toml
      partita simulate model.pb --shape x=32,224,224,3 --fetch logits --devices "cpu:1,gpu:2"
      partita simulate model.pb --shape x=32,784 --target train --devices "cpu:1,gpu:2" --order critical-path
    """
    from .commands.choices import read_order
    from .commands.reporting.step_outputs import StepOutputs
    from .commands.request import Request
    from .commands.simulate import simulate as execute

    outputs = StepOutputs(trace, report, command_line(), tensorboard)
    return execute(Request(**flags), read_order(order, priorities), as_json, outputs)


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=completion.workloads)
@model_options
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=completion.settings,
    help="Another setting of the workload.",
)
@device_options
@click.option(
    "--gpus",
    metavar="NAME:N",
    shell_complete=completion.gpus,
    help='Machines of the catalog with so many GPUs: "H100-SXM:64".',
)
@click.option("--out", type=OUTPUT, metavar="FILE.pb", help="Write the graph; text if it ends in .pbtxt.")
@click.option(
    "--simulate", "is_simulated", is_flag=True, help="Say how long a step takes; ranks alike are played once."
)
@click.option("--list", "is_list", is_flag=True, help="List all workloads and their settings, as without NAME.")
@trace_option
@report_option
@tensorboard_option
@json_option
def workload(
    as_json: bool, trace: Path | None, report: Path | None, tensorboard: Path | None, **flags: Any
) -> int:  # Any: flags differ in type
    """Build the graph of the workload NAME, or list all workloads and their settings.

    Families of models take the sizes of a config.json, as Hugging Face writes them, and a split, which spreads the step
    over devices; docs/models.md lists the fields of both. Installed packages add workloads by entry points;
    docs/extending.md says how.

    \b
    Examples:
      partita workload transformer --set layers=4 --set gpus=2 --out encoder.pb
      partita workload llama --config config.json --split tp=8,pp=4,dp=2,microbatches=16 --simulate --cluster c.toml
    """
    from .commands.reporting.step_outputs import StepOutputs
    from .commands.workload import WorkloadFlags, workload as execute

    return execute(WorkloadFlags(**flags, outputs=StepOutputs(trace, report, command_line(), tensorboard)), as_json)
