"""`partita plan`: its arguments and flags.

As in `cli`, the command imports its own modules when it runs. A family of models has a flag for each size that a plan
depends on; those that no flag has, such as latent attention, are in a config.json alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from . import completion
from .executor_options import executor_options
from .help import Command, SectionOption, command_line
from .options import FILE, OUTPUT, json_option
from .planned_models import PLANNED, SIZES

Decorated = TypeVar("Decorated", bound=Callable[..., object])
_COUNT = click.IntRange(min=1)


def _section(section: str, *names: str, text: str, **attrs: Any) -> Callable[[Any], Any]:  # Any: as click's
    return click.option(*names, cls=SectionOption, section=section, help=text, **attrs)


def _size_options(command: Decorated) -> Decorated:
    """Adds a flag for each size."""
    decorated: Any = command  # what click returns is of no declared type
    for name, text in reversed(SIZES.items()):
        flag = "--" + name.replace("_", "-")
        decorated = _section("Sizes of the model", flag, name, text=text, type=click.IntRange(min=0), metavar="N")(
            decorated
        )
    result: Decorated = decorated
    return result


@click.command(cls=Command)
@click.argument("family", type=click.Choice(PLANNED), metavar="|".join(PLANNED))
@click.option("--config", type=FILE, metavar="FILE", help="The sizes of the model: a config.json, or its folder.")
@click.option("--cluster", type=FILE, metavar="FILE.toml", help="The machines, from a file.")
@click.option(
    "--gpus",
    metavar="NAME:N",
    shell_complete=completion.gpus,
    help='The machines: "H100-SXM:64" is 64 of them, in machines of the catalog.',
)
@click.option("--global-batch", type=_COUNT, metavar="B", help="Sequences of a training step.")
@click.option(
    "--seq", type=_COUNT, metavar="S", help="Tokens of a sequence.  [default: the model's positions, or 4096]"
)
@click.option("--search", metavar="LIST", help='The axes to search, "tp,pp,microbatch".  [default: all]')
@click.option("--split", metavar="LIST", help='What is fixed, or one of several values: "tp=8,zero=1+3".')
@click.option("--top", type=_COUNT, default=10, show_default=True, metavar="N", help="How many plans to print.")
@click.option(
    "--simulate", "simulated", type=click.IntRange(min=0), default=0, metavar="N", help="Simulate the first N."
)
@click.option("--gpu-counts", metavar="LIST", help='The best plan on so many GPUs each: "8,16,32".')
@click.option(
    "--what-if", "what_if", multiple=True, metavar="NAME=2x", help="Plan again with a faster link, memory or rate."
)
@click.option(
    "--calibration", "calibrations", type=FILE, multiple=True, metavar="FILE.toml", help="Fits for a model of GPU."
)
@_section("Money", "--tokens", text="Tokens of the whole run: $, days and goodput.", metavar="N")
@_section("Money", "--storage", text='Rate at which checkpoints are written, "100 GB/s".', metavar="RATE")
@_section(
    "How a step is computed",
    "--gradient-bytes",
    text="Bytes of a gradient that data-parallel ranks add up.  [default: 4]",
    type=click.Choice(["2", "4"]),
)
@_section(
    "How a step is computed",
    "--imbalance",
    text="Tokens of the busiest rank's experts, by the mean.  [default: 1.0]",
    type=click.FloatRange(min=1),
    metavar="X",
)
@_section("How a step is computed", "--dropout", text="With dropout in attention and both branches.", is_flag=True)
@_section(
    "How a step is computed", "--unfused-attention", text="Attention as products and softmax in memory.", is_flag=True
)
@_section("Inference", "--inference", text="Plan serving in place of training.", is_flag=True)
@_section("Inference", "--prompt", text="Tokens of a prompt.", type=_COUNT, metavar="N")
@_section("Inference", "--output", text="Tokens that follow a prompt.", type=_COUNT, metavar="N")
@_section(
    "Inference", "--batch", text="Sequences at a time, one or several: 1,8,64.  [default: searched]", metavar="LIST"
)
@_section(
    "Inference",
    "--tpot-ms",
    text="The longest time per output token.",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MS",
)
@click.option(
    "--report",
    type=OUTPUT,
    metavar="FILE.html",
    help="Write a page: the table, where time and memory of each plan go, and the timelines of those simulated.",
)
@executor_options("serial")
@_size_options
@json_option
def plan(as_json: bool, **flags: Any) -> int:  # Any: flags differ in type
    """Say what training a model costs on a cluster: the fastest split that fits, and why.

    A closed form answers for every way to spread the step over the GPUs: how long it takes, where the time goes, how
    much memory it needs, and how sure that is. --search names fewer axes to search, --split fixes some. The best is
    explained; --simulate N builds the graphs of the first N plans and simulates them too, which --workers does side by
    side, as it plans for --gpu-counts. docs/planning.md goes through it.

    \b
    Examples:
      partita plan llama --config config.json --gpus H100-SXM:64 --global-batch 512 --seq 4096
      partita plan moe --config config.json --cluster rack.toml --global-batch 1024 --split tp=1,zero=1+3 --simulate 3
      partita plan llama --config config.json --gpus H100-SXM:8 --inference --prompt 2048 --output 256 --tpot-ms 50
    """
    from .commands.planning.command import plan as execute
    from .commands.planning.flags import PlanFlags

    sizes = {name: flags.pop(name) for name in SIZES}
    given = {name: size for name, size in sizes.items() if size is not None}
    return execute(PlanFlags(**flags, command=command_line(), sizes=given), as_json)
