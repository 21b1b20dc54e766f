"""What a shell offers when Tab is pressed: names of workloads, models, passes, ops and stories.

    partita workload tr<Tab>                    training transformer
    partita workload transformer --set la<Tab>  layers=
    partita show g.pb --passes inline,co<Tab>   inline,common inline,converters

click offers commands, flags, files, and choices by itself. Each function imports what it lists when it is called: only
a shell that completes calls it. `docs/cli.md` says how a shell is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from ..entry_points import names_of

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def _of(names: Callable[[], Iterable[str]]) -> Completion:
    """Offers the names that begin as the word does."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def _devices() -> Iterable[str]:
    from ..devices.catalog import device_names

    return device_names()


def _models() -> Iterable[str]:
    from ..devices.catalog import link_names

    return [*_devices(), *link_names()]


def _gpus() -> Iterable[str]:
    from ..devices.catalog import device_spec

    return [f"{name}:" for name in _devices() if device_spec(name).kind == "GPU"]


def _ops() -> Iterable[str]:
    from ..graph.ops.registry import op_names

    return op_names()


def _stories() -> Iterable[str]:
    from .stories.catalog import STORIES

    return STORIES


def _workloads() -> Iterable[str]:
    from .workloads.registry import workload_names

    return workload_names()


devices, models, gpus, ops, stories, workloads = map(_of, (_devices, _models, _gpus, _ops, _stories, _workloads))
costs = _of(lambda: ("fitted", "roofline", "grappler", "measured:"))


def passes(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offers passes for the last word of a list."""
    from ..graph.passes.names import GROUP, SUMMARIES

    before, comma, word = incomplete.rpartition(",")
    names = [*SUMMARIES, *(name for name in names_of(GROUP) if name not in SUMMARIES)]
    return [f"{before}{comma}{name}" for name in names if name.startswith(word) and name not in before.split(",")]


def settings(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Offers the settings of the workload that the line names, without a value."""
    from .workloads.registry import find_workload

    words = (ctx.params.get("name"), *ctx.args)  # of a line that ends with a flag, click leaves the others in args
    known = set(_workloads())
    named = [word for word in words if word in known][:1]
    found = [setting for name in named for setting in find_workload(name).settings()]
    return [f"{setting}=" for setting in found if setting.startswith(incomplete)]
