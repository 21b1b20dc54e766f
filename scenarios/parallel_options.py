"""The flags that make a training step parallel, which the commands on a request share.

A command gets them as one argument, `parallel`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, TypeVar

import click

from .help import SectionOption

Command = TypeVar("Command", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class ParallelOptions:
    """The flags, as texts and numbers; None for what is not given."""

    batch: str | None = None
    loss: str | None = None
    replicate: int | None = None
    reduction: str | None = None
    mean: str | None = None
    concat: str | None = None
    parameters: str | None = None
    batch_statistics: str | None = None
    zero: int | None = None
    zero_group: int | None = None
    units: str | None = None
    bucket_bytes: int | None = None
    pipeline: int | None = None
    microbatches: int | None = None
    schedule: str | None = None
    interleave: int | None = None
    recompute: str | None = None
    segments: str | None = None

    @property
    def rewrites(self) -> bool:
        """Whether any pass is asked for."""
        return not (self.replicate is None and self.pipeline is None and self.recompute is None)

    def given(self) -> list[str]:
        """The flags that are given, "--zero"."""
        return [flag_of(field.name) for field in fields(self) if getattr(self, field.name) is not None]


def flag_of(name: str) -> str:
    """The flag of a field: "--zero-group"."""
    return "--" + name.replace("_", "-")


NOT_PARALLEL = ParallelOptions()

_COUNT = click.IntRange(min=1)


def _option(flag: str, text: str, **attrs: Any) -> Callable[[Any], Any]:  # Any: as click's
    return click.option(flag, cls=SectionOption, section="Training in parallel", help=text, **attrs)


_OPTIONS = (
    _option("--batch", "What has the batch along axis 0: placeholders, or inputs of the signature.", metavar="LIST"),
    _option("--loss", "The loss of the training step: a tensor, or an output of the signature.", metavar="NAME"),
    _option("--replicate", "N copies of the step, each with a part of the batch.", type=_COUNT, metavar="N"),
    _option("--reduction", "What the loss is over the batch.  [default: mean]", type=click.Choice(["mean", "sum"])),
    _option("--mean", "Outputs, such as metrics, to average over the replicas.", metavar="LIST"),
    _option("--concat", "Outputs with a row per row of the batch, to join.", metavar="LIST"),
    _option("--parameters", "Variables and updates stay on this device, a parameter server.", metavar="DEVICE"),
    _option(
        "--batch-statistics",
        "Whether a part of the batch may be normalised by itself.  [default: refuse]",
        type=click.Choice(["refuse", "local"]),
    ),
    _option(
        "--zero",
        "What replicas share: 1 the optimizer's state, 2 gradients too, 3 parameters too.  [default: 0]",
        type=click.IntRange(0, 3),
    ),
    _option("--zero-group", "How many replicas share; each group has all.  [default: N]", type=_COUNT, metavar="K"),
    _option("--units", "Name scopes whose parameters are gathered together, with --zero 3.", metavar="LIST"),
    _option("--bucket-bytes", "Gradients that are reduced at once.  [default: 26214400]", type=_COUNT, metavar="BYTES"),
    _option("--pipeline", "Cut the step into stages on P devices.", type=_COUNT, metavar="P"),
    _option("--microbatches", "The parts of the batch that go through the stages.", type=_COUNT, metavar="M"),
    _option("--schedule", "The order of these parts: gpipe, 1f1b, interleaved.  [default: 1f1b]", metavar="NAME"),
    _option("--interleave", "Stages per device.  [default: 1]", type=_COUNT, metavar="V"),
    _option(
        "--recompute",
        "Compute activations again for the gradients: full, products (whose outputs are kept), or tensors to keep.",
        metavar="POLICY",
    ),
    _option(
        "--segments",
        "What is computed again together: name scopes, or a number of parts.  "
        "[default: the square root of the number of activations]",
        metavar="LIST",
    ),
)


def parallel_options(command: Command) -> Command:
    """Adds the flags to a command, which gets them as `parallel`."""
    names = [field.name for field in fields(ParallelOptions)]

    @wraps(command)
    def gathered(**flags: Any) -> object:  # Any: flags differ in type
        return command(parallel=ParallelOptions(**{name: flags.pop(name) for name in names}), **flags)

    decorated: Any = gathered  # what click returns is of no declared type
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: Command = decorated
    return result
