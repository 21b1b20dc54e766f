"""The flags that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ..graph.passes.names import GROUP, INLINE, SUMMARIES
from . import completion
from .help import ListingOption

FILE = click.Path(path_type=Path)
EXPORTERS = "partita.exporters"  # as in devices/timing/export, which takes long to import
OUTPUT = click.Path(path_type=Path, readable=False)  # a file to write need not be readable
Command = TypeVar("Command", bound=Callable[..., object])

tags_option = click.option(
    "--tags",
    metavar="LIST",
    help="Tags of the graph of a SavedModel, separated by commas.  [default: serve]",
)
trace_option = click.option(
    "--trace",
    cls=ListingOption,
    listed={},
    group=EXPORTERS,
    type=OUTPUT,
    metavar="FILE",
    help="Write the simulated step: .timeline everything, .json a Chrome trace, .pftrace a Perfetto trace, .csv a row "
    "per event, .pb RunMetadata.",
)
report_option = click.option(
    "--report",
    type=OUTPUT,
    metavar="FILE.html",
    help="Write a page of the simulated step: where its time and memory go. It needs a browser, and no network.",
)
tensorboard_option = click.option(
    "--tensorboard",
    type=OUTPUT,
    metavar="DIR",
    help="Write the graph, the figures and the RunMetadata of the simulated step into a folder for TensorBoard.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, errors too; docs/cli.md lists the keys."
)
recv_epochs_option = click.option(
    "--recv-epochs",
    is_flag=True,
    help="Hold each receive back until shortly before its tensor is needed, by guessed start times.",
)


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options or arguments as one decorator, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_TRIPS_HELP = (
    "How often a loop runs, by its frame_name, or by the node of a While or For; "
    "several numbers: one per iteration of the loops around it."
)
_BRANCH_HELP = "Which branch an If or Case takes (of an If 1 is then); by the node of the predicate for a Switch."

choice_options = _together(
    click.option("--trips", "trips", multiple=True, metavar="FRAME=N[,N...]", help=_TRIPS_HELP),
    click.option("--branch", "branches", multiple=True, metavar="NODE=K[,K...]", help=_BRANCH_HELP),
)
"""the flags for counts of loops and branches that do not follow from the graph"""

order_options = _together(
    click.option(
        "--order",
        type=click.Choice(["ready", "critical-path"]),
        help="What is taken first of ready kernels, and of complete collectives of a group: what came first, or what "
        "the longest way leads from to the end of the step.  [default: ready]",
    ),
    click.option(
        "--priority",
        "priorities",
        multiple=True,
        metavar="NODE=NUMBER",
        help="Take a node before others, the highest number first; nodes that are not named have 0.",
    ),
)
"""the flags that say in which order ready kernels and collectives are taken"""

_graph_argument = click.argument("graph", type=FILE)
device_options = _together(
    click.option(
        "--devices",
        metavar="LIST",
        help='Devices of one machine: "cpu:2,gpu:4".  [default: those that GRAPH requests]',
    ),
    click.option("--cluster", type=FILE, metavar="FILE.toml", help="Devices and links from a file."),
)
"""the flags that say which devices there are"""

model_options = _together(
    click.option("--config", type=FILE, metavar="FILE", help="The sizes of a model: a config.json, or its folder."),
    click.option("--split", metavar="LIST", help='How the step is spread over devices: "tp=8,pp=4,dp=2,batch=64".'),
    click.option(
        "--inference",
        type=click.Choice(["prefill", "decode"]),
        help="Infer in place of training.",
    ),
    click.option("--context", type=click.IntRange(min=1), metavar="N", help="Tokens in the cache before that token."),
)
"""the flags that models of all families have in common"""
_signature_option = click.option(
    "--signature",
    metavar="NAME",
    help="Signature of a SavedModel; feeds and fetches use its names.  [default: serving_default]",
)

rewriting_options = _together(_graph_argument, device_options, _signature_option, tags_option)
"""the flags that say which graph is rewritten, and for which devices"""

placement_options = _together(
    _graph_argument,
    click.option("--feed", "feeds", multiple=True, metavar="NAME=FILE.npy", help="Feed one tensor from a file."),
    click.option(
        "--feeds", "feeds_file", type=FILE, metavar="FILE.npz", help="Feed a tensor per array; keys are names."
    ),
    click.option("--fetch", "fetches", multiple=True, metavar="NAME", help='Fetch a tensor, "y" or "y:1".'),
    click.option("--target", "targets", multiple=True, metavar="NAME", help="Run a node, fetch nothing from it."),
    device_options,
    click.option(
        "--soft-placement",
        is_flag=True,
        help="If the device that a node requests does not exist, use another one of its task.",
    ),
    _signature_option,
    tags_option,
    click.option(
        "--passes",
        cls=ListingOption,
        listed=SUMMARIES,
        group=GROUP,
        metavar="LIST",
        shell_complete=completion.passes,
        default=INLINE,
        show_default=True,
        help="Passes that rewrite the graph before it runs, in order, separated by commas.",
    ),
    click.option(
        "--inline/--no-inline",
        default=None,
        help="Inline calls of functions, as --passes does unless it is given, or keep them.",
    ),
)
"""the flags that all commands on a request share"""

cost_options = _together(
    click.option(
        "--costs",
        metavar="SOURCE",
        shell_complete=completion.costs,
        help="Where the times of ops come from: roofline, grappler, fitted, or measured:FILE.pb, a trace.  "
        "[default: fitted]",
    ),
    click.option(
        "--calibration",
        "calibrations",
        type=FILE,
        multiple=True,
        metavar="FILE.toml",
        help="Fits for a model of device, in place of the catalog's; the first file that has one counts.",
    ),
    click.option("--no-tf32", is_flag=True, help="Compute products of float32 at full precision on GPUs."),
)
"""the flags that say where the times of ops come from"""

unknown_options = _together(
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="NAME=2,3",
        help="Shape of a tensor: a feed without values, or what a node computes; NAME= for a scalar.",
    ),
    click.option(
        "--assume-size",
        type=click.IntRange(min=0),
        metavar="N",
        help="Take every unknown size as N.  [default: an unknown size is an error]",
    ),
    click.option(
        "--trace-in",
        type=FILE,
        metavar="FILE.pb",
        help="Take what is unknown from the trace of a real step: RunMetadata, TensorFlow's too.",
    ),
    click.option("--trace-times", is_flag=True, help="Take the times of ops from that trace too."),
)
"""the flags that say what a graph leaves open, for a step that is timed without being run"""
