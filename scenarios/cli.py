"""The command line: commands, help, and exit codes.

Only click, and flags, are imported here. A command imports its own module when it runs, so that `--help` is fast.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import completion
from .failing import DEBUG, print_error, print_exception
from .help import Group, command_line
from .interrupts import Interrupts
from .measuring import calibrate, validate
from .options import (
    FILE,
    OUTPUT,
    choice_options,
    cost_options,
    json_option,
    placement_options,
    recv_epochs_option,
    report_option,
    tags_option,
    tensorboard_option,
    trace_option,
    unknown_options,
)
from .parallel_options import parallel_options
from .planning import plan
from .reporting import report
from .rewriting import rewrite
from .simulating import simulate, workload
from .sweeping import sweep

_EPILOG = f"""\b
Exit codes:
  0  done
  1  the run failed
  2  wrong usage or configuration: a flag, a file, a feed, a cluster
  3  the graph needs an op that Partita has no kernel for, or cannot time
  4  simulate: the step does not fit in the memory of its devices
  130  interrupted
Set {DEBUG}=1 to see the traceback of an error."""


@click.group(
    cls=Group, epilog=_EPILOG, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="partita")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Rehearse a multi-device dataflow run.

    Partita takes a dataflow graph (a TensorFlow GraphDef), cuts it into a graph per simulated device, runs them, and
    says how long the step would have taken on real hardware.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command()
@placement_options
@cost_options
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of steps; variables keep their values between them.",
)
@click.option(
    "--out",
    type=OUTPUT,
    metavar="OUT.npz",
    help="Write the values of the last step; keys are the names of the fetches.",
)
@trace_option
@report_option
@tensorboard_option
@parallel_options
@json_option
def run(
    steps: int,
    out: Path | None,
    trace: Path | None,
    report: Path | None,
    tensorboard: Path | None,
    as_json: bool,
    **flags: Any,
) -> None:  # Any: flags differ in type
    """Run GRAPH and simulate its step time.

    GRAPH is a GraphDef file, binary, or text if it ends in .pbtxt, or the folder of a SavedModel, whose variables are
    restored first. Prints the fetched values, the simulated time of a step, and the load of each device. Nodes run on
    the device that they request; nodes without a request are placed.

    Without --fetch and --target the whole graph runs, and outputs that no other node reads are fetched. String tensors
    are fed as arrays of bytes or text (numpy's S and U, not objects), bfloat16 as numpy stores it.

    \b
    Examples:
      partita run model.pb --feed x=images.npy --fetch logits
      partita run model.pb --feeds batch.npz --fetch loss --target train --steps 10 --devices "cpu:1,gpu:4"
      partita run saved_model --signature serving_default --feed x=images.npy
    """
    import trio

    from .commands.reporting.step_outputs import StepOutputs
    from .commands.request import Request
    from .commands.run import run as execute

    interrupts = click.get_current_context().ensure_object(Interrupts)
    outputs = StepOutputs(trace, report, command_line(), tensorboard)
    with interrupts.left_to_loop():
        trio.run(interrupts.noted_in_loop, execute, Request(**flags), steps, out, outputs, as_json)


@cli.command()
@placement_options
@recv_epochs_option
@click.option("--out", type=OUTPUT, required=True, metavar="DIR", help="Folder for the files; made if missing.")
@parallel_options
@json_option
def partition(out: Path, as_json: bool, **flags: Any) -> None:  # Any: flags differ in type
    """Cut GRAPH and write the graph of each device.

    One GraphDef per device that takes part in the request, named after the device: cpu0.pb, gpu3.pb, or, outside the
    local task, worker_r0_t1_gpu2.pb. Feeds need only a name: --feed x.

    \b
    Example:
      partita partition model.pb --feed x --fetch logits --devices "cpu:1,gpu:2" --out parts
    """
    from .commands.partition import partition as execute
    from .commands.request import Request

    execute(Request(**flags), out, as_json)


@cli.command()
@placement_options
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@recv_epochs_option
@choice_options
@unknown_options
@cost_options
@parallel_options
@json_option
def explain(nodes: tuple[str, ...], as_json: bool, **flags: Any) -> None:  # Any: flags differ in type
    """Say where the simulated time of each NODE of GRAPH comes from.

    Prints the formula, what it reads of the op and of the device, the interval, what a datasheet alone says, and what
    was assumed. Flags are those of simulate; a node has the device and the shapes that it has there.

    \b
    Examples:
      partita explain model.pb fc1/MatMul --shape x=32,784 --fetch logits --devices "cpu:1,gpu:1" --costs fitted
    """
    from .commands.explain import explain as execute
    from .commands.request import Request

    execute(Request(**flags), nodes, as_json)


@cli.command()
@placement_options
@recv_epochs_option
@click.option(
    "--stage",
    type=click.Choice(["raw", "lowered", "placed", "pruned", "partitioned", "optimised", "plan"]),
    default="partitioned",
    show_default=True,
    help="The stage of the pipeline to print.",
)
@click.option("--device", metavar="NAME", help='Show one device only, "gpu:1" or its full name.')
@click.option("--node", "pattern", metavar="PATTERN", help='Show only nodes whose name matches, "layer1/*".')
@parallel_options
@json_option
def show(
    stage: str, device: str | None, pattern: str | None, as_json: bool, **flags: Any
) -> None:  # Any: flags differ in type
    """Print GRAPH as text, at one stage of the pipeline.

    A line per node, inputs first: name, output types, op, inputs, attrs, device. The stages are the graph as its file
    has it (raw), with loops and conditionals made of plain nodes (lowered), with a device for every node (placed),
    reduced to the request (pruned), cut into one graph per device (partitioned), after the passes over such graphs
    (optimised), and compiled (plan).

    \b
    Examples:
      partita show model.pb --feed x --fetch logits --devices "cpu:1,gpu:2" --device gpu:1
      partita show model.pb --stage raw --node "layer1/*"
    """
    from .commands.request import Request
    from .commands.show import show as execute

    execute(Request(**flags), stage, device, pattern, as_json)


@cli.command()
@click.argument("graph", type=FILE)
@tags_option
@json_option
def inspect(graph: Path, tags: str | None, as_json: bool) -> None:
    """Say what is in GRAPH.

    GRAPH is a GraphDef file or the folder of a SavedModel, whose signatures are listed too.

    Counts its ops and requested devices, lists its placeholders and its default fetches, and names the ops for which
    Partita has no kernel or no shape function.
    """
    from .commands.inspect import inspect as execute

    execute(graph, tags, as_json)


@cli.command()
@click.argument("name", required=False, shell_complete=completion.stories)
@json_option
def scenario(name: str | None, as_json: bool) -> None:
    """Run a story: a shipped example that builds, runs and simulates a graph.

    Without NAME, lists the stories. Each is a short script in the folder scenarios/stories/.
    """
    from .commands.scenario import scenario as execute

    execute(name, as_json)


@cli.command()
@click.argument("name", required=False, shell_complete=completion.models)
@json_option
def devices(name: str | None, as_json: bool) -> None:
    """List the models of devices and links, with the sources of their numbers.

    A cluster file may use these names. With NAME, lists only that model.
    """
    from .commands.devices import devices as execute

    execute(name, as_json)


@cli.command()
@click.argument("name", required=False, shell_complete=completion.ops)
@json_option
def ops(name: str | None, as_json: bool) -> None:
    """Describe the op NAME, or list the families of ops.

    Prints inputs, outputs and attrs, the facts that passes ask for, the modules of its shape function, kernel, gradient
    and cost, and the types of devices that have a kernel for it in TensorFlow.

    \b
    Example:
      partita ops MatMul
    """
    from .commands.ops import ops as execute

    execute(name, as_json)


cli.add_command(simulate)
cli.add_command(workload)
cli.add_command(report)
cli.add_command(plan)
cli.add_command(rewrite)
cli.add_command(sweep)
cli.add_command(validate)
cli.add_command(calibrate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and prints its error; returns the exit code. `arguments` are those of the process unless given.

    KeyboardInterrupt after Ctrl-C, also where what the command ran has lost it.
    """
    as_json = "--json" in (sys.argv[1:] if arguments is None else arguments)
    interrupts = Interrupts()
    try:
        with interrupts.noted():
            # Not standalone: click would print three lines for wrong usage, and we promise one.
            return cli.main(arguments, prog_name="partita", standalone_mode=False, obj=interrupts) or 0
    except click.ClickException as error:
        print_error(error.format_message(), error.exit_code, "INVALID_ARGUMENT", as_json)
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    except BrokenPipeError:
        # The reader of stdout has closed it, as `head` does; redirect it, or Python's flush at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - one line and an exit code for whatever a command raises
        return print_exception(error, as_json)
