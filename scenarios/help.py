"""How the command line shows help: the classes of commands, of options, and of groups of them.

Little is imported, so that help is fast.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ..entry_points import names_of
from .wrapping import fitted


class ListingOption(click.Option):
    """An option whose help ends with what is registered under `group`: built in, and by installed packages."""

    def __init__(
        self, names: Sequence[str], *, listed: Mapping[str, str], group: str, **attrs: Any
    ) -> None:  # Any: as click's
        """`listed` is what is built in, each with a few words."""
        super().__init__(names, **attrs)
        self._listed = listed
        self._group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The names and the help of the option."""
        record, names = super().get_help_record(ctx), registered(self._listed, self._group)
        return record if record is None or not names else (record[0], f"{record[1]}  Registered: {names}.")


def registered(listed: Mapping[str, str], group: str) -> str:
    """Names with a few words each, then the names of the entry points of a group: "a (first), b (second), c"."""
    installed = [name for name in names_of(group) if name not in listed]
    return ", ".join([*(f"{name} ({words})" for name, words in listed.items()), *installed])


class SectionOption(click.Option):
    """An option that the help lists under a heading of its own."""

    def __init__(self, names: Sequence[str], *, section: str, **attrs: Any) -> None:  # Any: as click's
        """`section` is the heading."""
        super().__init__(names, **attrs)
        self.section = section


class Command(click.Command):
    """A command whose help fits the terminal, with options under several headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the sections of options, in the order in which they begin."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                title = parameter.section if isinstance(parameter, SectionOption) else "Options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def get_help(self, ctx: click.Context) -> str:
        """The text that `--help` prints."""
        return fitted(super().get_help(ctx), sys.stdout)


_ARGUMENTS = "partita.arguments"


def command_line() -> str:
    """The line that the current command was called by."""
    return shlex.join(["partita", *click.get_current_context().meta[_ARGUMENTS]])


class Group(click.Group):
    """The commands; for an unknown one the error suggests the nearest."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps the arguments for `command_line`."""
        ctx.meta[_ARGUMENTS] = tuple(args)
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """The text that `--help` prints."""
        return fitted(super().get_help(ctx), sys.stdout)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command named by the first argument."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.commands, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the commands are {', '.join(sorted(self.commands))}"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
