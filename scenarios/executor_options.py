"""The flags that say where calls run, which the commands share that make many of them.

A command gets them as one argument, `where`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .help import SectionOption

if TYPE_CHECKING:
    from .executors.chosen import ExecutorChoice

Command = TypeVar("Command", bound=Callable[..., object])
NAMES = ("serial", "processes", "dask")  # as in executors/chosen.py, whose imports help does without


def executor_options(usual: str) -> Callable[[Command], Command]:
    """Adds the flags to a command, which gets them as `where`; `usual` is the executor without flags."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathered(executor: str | None, workers: int | None, address: str | None, **flags: Any) -> object:
            return command(where=_choice(executor, workers, address, usual), **flags)  # Any: flags differ in type

        decorated: Any = gathered  # what click returns is of no declared type
        for option in reversed(_options(usual)):
            decorated = option(decorated)
        result: Command = decorated
        return result

    return decorate


def _choice(executor: str | None, workers: int | None, address: str | None, usual: str) -> ExecutorChoice:
    from .executors.chosen import ExecutorChoice

    return ExecutorChoice(executor, workers, address, usual)


def _options(usual: str) -> tuple[Callable[[Any], Any], ...]:  # Any: as click's
    def option(flag: str, text: str, **attrs: Any) -> Callable[[Any], Any]:  # Any: as click's
        return click.option(flag, cls=SectionOption, section="Where it runs", help=text, **attrs)

    return (
        option(
            "--executor",
            "One after another, in processes of this machine, or on a cluster of dask, a local one without --address.  "
            f"[default: {usual}]",
            type=click.Choice(NAMES),
        ),
        option(
            "--workers", "How many processes.  [default: one for each core]", type=click.IntRange(min=1), metavar="N"
        ),
        option("--address", "The scheduler of a dask cluster that runs.", metavar="tcp://HOST:PORT"),
    )
