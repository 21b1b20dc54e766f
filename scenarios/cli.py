"""The command line: flags, help, and how a process of `partita` ends.

Flows in: arguments. Flows out: an exit code and, when something went wrong, one line on stderr. Always holds: only
click is imported here, and a command imports its own module when it runs, so that `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

INTERRUPTED = 130
_DEBUG = "PARTITA_DEBUG"
_FILE = click.Path(path_type=Path)
Command = TypeVar("Command", bound=Callable[..., None])

_EPILOG = f"""\b
Exit codes:
  0  done
  1  the run failed
  2  wrong usage or configuration: a flag, a file, a feed, a cluster
  3  the graph needs an op that Partita has no kernel for, or cannot time
  130  interrupted
Set {_DEBUG}=1 to see the traceback of an error."""


@click.group(epilog=_EPILOG, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="partita")
def cli() -> None:
    """Rehearse a multi-device dataflow run.

    Partita takes a dataflow graph (a TensorFlow GraphDef), cuts it for a set of simulated devices, runs every cut,
    and says how long the step would have taken on real hardware.
    """


_tags_option = click.option(
    "--tags",
    default="serve",
    show_default=True,
    metavar="LIST",
    help="Tags of the graph of a SavedModel, with commas between.",
)


def _placement_options(command: Command) -> Command:
    """The flags that say what is asked of a graph, and where it runs."""
    for option in reversed(
        [
            click.argument("graph", type=_FILE),
            click.option(
                "--feed", "feeds", multiple=True, metavar="NAME=FILE.npy", help="Feed one tensor from a file."
            ),
            click.option(
                "--feeds", "feeds_file", type=_FILE, metavar="FILE.npz", help="Feed a tensor per array; keys are names."
            ),
            click.option("--fetch", "fetches", multiple=True, metavar="NAME", help='Fetch a tensor, "y" or "y:1".'),
            click.option(
                "--target", "targets", multiple=True, metavar="NAME", help="Run a node, fetch nothing from it."
            ),
            click.option(
                "--devices",
                metavar="LIST",
                help='Devices of one machine: "cpu:2,gpu:4".  [default: what GRAPH asks for]',
            ),
            click.option("--cluster", type=_FILE, metavar="FILE.toml", help="Devices and links from a file."),
            click.option(
                "--signature",
                metavar="NAME",
                help="What to ask of a SavedModel; feeds and fetches go by its names.  [default: serving_default]",
            ),
            _tags_option,
            click.option(
                "--inline", is_flag=True, help="Put the bodies of functions in the place of their calls first."
            ),
        ]
    ):
        command = option(command)
    return command


@cli.command()
@_placement_options
@click.option(
    "--steps", type=click.IntRange(min=1), default=1, show_default=True, help="Run so many steps; state is kept."
)
@click.option(
    "--out", type=_FILE, metavar="OUT.npz", help="Write what the last step fetched; keys are the names asked for."
)
@click.option("--trace", type=_FILE, metavar="TRACE.json", help="Write the simulated step as a Chrome trace.")
def run(steps: int, out: Path | None, trace: Path | None, **flags: Any) -> None:  # Any: flags differ in type
    """Run GRAPH and simulate its step time.

    GRAPH is a GraphDef file, binary, or text if it ends in .pbtxt, or the folder of a SavedModel, whose variables are
    restored first. Prints the fetched values, the simulated time of a
    step and what each device did in it. Nodes run where they ask to; the others are placed.

    Without --fetch and --target all of the graph runs, and whatever nothing else reads is fetched. String tensors are
    fed as arrays of bytes or text, bfloat16 as numpy stores it.

    \b
    Examples:
      partita run model.pb --feed x=images.npy --fetch logits
      partita run model.pb --feeds batch.npz --fetch loss --target train --steps 10 --devices "cpu:1,gpu:4"
      partita run saved_model --signature serving_default --feed x=images.npy
    """
    import trio

    from .commands.request import Request
    from .commands.run import run as execute

    trio.run(execute, Request(**flags), steps, out, trace)


@cli.command()
@_placement_options
@click.option("--out", type=_FILE, required=True, metavar="DIR", help="Folder for the files; made if missing.")
def partition(out: Path, **flags: Any) -> None:  # Any: flags differ in type
    """Cut GRAPH and write the graph of each device.

    One GraphDef per device that has a part in the request, named after the device: cpu0.pb, gpu3.pb, and with the
    task in front where it is not the local one, worker_r0_t1_gpu2.pb. Feeds need a name only: --feed x.

    \b
    Example:
      partita partition model.pb --feed x --fetch logits --devices "cpu:1,gpu:2" --out parts
    """
    from .commands.partition import partition as execute
    from .commands.request import Request

    execute(Request(**flags), out)


@cli.command()
@_placement_options
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=2,3",
    help="Feed a tensor of that shape, whatever its values; NAME= for a scalar.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--trace", type=_FILE, metavar="TRACE.json", help="Write the simulated step as a Chrome trace.")
def simulate(as_json: bool, trace: Path | None, **flags: Any) -> None:  # Any: flags differ in type
    """Say how long a step of GRAPH takes, without running it.

    Works from shapes and the models of devices and links alone, so it needs no kernels, and no values unless a shape
    depends on them. Prints the makespan, how busy each device is, its peak memory, and a timeline. Functions that are
    called rather than inlined, loops and collectives cannot be timed yet, and are an error that names them.

    A feed has the shape of its file, of --shape, or of its placeholder.

    \b
    Examples:
      partita simulate model.pb --feeds batch.npz --target train --cluster cluster.toml
      partita simulate model.pb --shape x=32,224,224,3 --fetch logits --devices "cpu:1,gpu:2"
    """
    from .commands.request import Request
    from .commands.simulate import simulate as execute

    execute(Request(**flags), as_json, trace)


@cli.command()
@click.argument("graph", type=_FILE)
@_tags_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def inspect(graph: Path, tags: str, as_json: bool) -> None:
    """Say what is in GRAPH.

    GRAPH is a GraphDef file or the folder of a SavedModel, whose signatures are listed too.

    Counts its ops and the devices they ask for, lists the placeholders it wants fed and what it would fetch, and
    names the ops that Partita has no kernel or no shape function for.
    """
    from .commands.inspect import inspect as execute

    execute(graph, tags, as_json)


@cli.command()
@click.argument("name", required=False)
def scenario(name: str | None) -> None:
    """Tell a shipped story: a graph built, run and simulated.

    Without NAME, lists the stories. Each is a short script in the folder scenarios/ to learn from and to copy.
    """
    from .stories import STORIES, tell

    if name is None:
        width = max(map(len, STORIES))
        click.echo("\n".join(f"{story:<{width}}  {what}" for story, what in STORIES.items()))
    elif name in STORIES:
        for line in tell(name):
            click.echo(line)
    else:
        raise click.UsageError(f"there is no story {name!r}; the stories are {', '.join(STORIES)}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process; `arguments` are those of the process unless given."""
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        # Not standalone, because click would explain wrong usage in three lines.
        return cli.main(arguments, prog_name="partita", standalone_mode=False) or 0
    except click.ClickException as error:
        _report(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _report("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read stdout has had enough, as `head` does; Python's own flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: a traceback is for those who ask for it
        return _explain(error)


def _explain(error: Exception) -> int:
    """Prints what a command raised; its exit code."""
    from .commands.failure import exit_code, one_line

    if os.environ.get(_DEBUG):
        import traceback

        traceback.print_exception(error)
    _report(one_line(error))
    return exit_code(error)


def _report(text: str) -> None:
    click.echo(f"partita: error: {' '.join(text.split())}", err=True)
