"""Flags of a command by the names that a sweep gives them, and as arguments of its command line.

    values      {"family": "llama", "global-batch": 512, "split": "zero=1", "split.tp": 4, "dropout": True, "top":
    False} arguments   ["--global-batch=512", "--split=zero=1,tp=4", "--dropout", "--", "llama"]

A name is that of a flag without its dashes, or of an argument. A flag that takes NAME=VALUE, or a list of these, has a
name with a dot for each of its parts: `set.layers`, `split.tp`, `shape.x`. False leaves a flag out; a list gives it
several times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from ...errors import InvalidArgumentError, shown
from ...graph.suggestions import suggestion
from ..commands.failure import ConfigurationError
from ..options import OUTPUT
from ..swept_commands import SWEPT
from .axes import AxisScalar, AxisValue
from .functions import is_file


class FlagNames:
    """The flags and arguments of a command by name."""

    def __init__(self, command: str) -> None:
        """InvalidArgumentError for a command that cannot be swept."""
        if command not in SWEPT.commands:
            raise InvalidArgumentError(f"command {command!r} cannot be swept{suggestion(command, SWEPT.commands)}")
        self.command = SWEPT.commands[command]
        self._parameters: dict[str, click.Parameter] = {}
        for parameter in self.command.params:
            is_flag = isinstance(parameter, click.Option)
            for name in parameter.opts if is_flag else [parameter.name or ""]:
                self._parameters[name.removeprefix("--")] = parameter
        self._parameters.pop("json")  # which every point has

    def checked(self, name: str) -> str:
        """A name with `-` for `_`; InvalidArgumentError for one that the command does not have, with the nearest."""
        flag, dot, part = name.partition(".")
        known = flag.replace("_", "-")
        if known not in self._parameters:
            raise InvalidArgumentError(f"{self.command.name} has no flag {flag!r}{suggestion(known, self._parameters)}")
        if dot and not self._has_parts(known):
            raise InvalidArgumentError(f"{name!r}: --{known} has no parts NAME=VALUE; write {known} alone")
        return f"{known}{dot}{part}"

    def _has_parts(self, flag: str) -> bool:
        """Whether a flag takes NAME=VALUE, or a list of these."""
        shape = self._parameters[flag].metavar or ""
        return "=" in shape or shape == "LIST"

    def outputs(self, values: Mapping[str, AxisValue]) -> Iterator[tuple[str, str]]:
        """The flags that name files to write, with these."""
        for name, value in values.items():
            if self._is_output(name) and isinstance(value, str):
                yield name, value

    def missing_output(self, values: Mapping[str, AxisValue]) -> str | None:
        """A flag that names a file to write, that the command needs, and that is not given."""
        for name, parameter in self._parameters.items():
            if parameter.required and parameter.type is OUTPUT and name not in values:
                return name
        return None

    def paths(self, values: Mapping[str, AxisValue]) -> Iterator[Path]:
        """The files and folders that are read: those of flags for paths, and files in texts, as NAME=FILE too."""
        for name, value in values.items():
            for text in map(str, _items(value)):
                if self._is_path(name):
                    yield from map(Path, filter(_exists, [text]))
                elif not self._is_output(name):
                    yield from map(Path, filter(is_file, (text, text.partition("=")[2], text.partition(":")[2])))

    def absolute(self, values: Mapping[str, AxisValue], folder: Path) -> dict[str, AxisValue]:
        """The values with those that are paths below `folder`, for a process that works in another one."""
        return {
            name: str(folder / value)
            if isinstance(value, str) and (self._is_output(name) or (self._is_path(name) and _exists(folder / value)))
            else value
            for name, value in values.items()
        }

    def _parameter(self, name: str) -> click.Parameter:
        return self._parameters[name.partition(".")[0]]

    def _is_output(self, name: str) -> bool:
        return self._parameter(name).type is OUTPUT

    def _is_path(self, name: str) -> bool:
        """Whether a flag is a path that is read."""
        return isinstance(self._parameter(name).type, click.Path) and not self._is_output(name)

    def arguments(self, values: Mapping[str, AxisValue]) -> list[str]:
        """The command line without the command; InvalidArgumentError for a value that the flag does not take."""
        flags: list[str] = []
        words: list[str] = []
        for name in dict.fromkeys(name.partition(".")[0] for name in values):
            parameter = self._parameters[name]
            if isinstance(parameter, click.Argument):
                words += map(str, _items(values[name]))
            elif isinstance(parameter, click.Option) and parameter.is_flag:
                flags += _switch(parameter, name, values[name])
            else:
                multiple = isinstance(parameter, click.Option) and parameter.multiple
                flags += (f"--{name}={text}" for text in _texts(name, values, multiple=multiple))
        return [*flags, "--", *words]

    def check(self, values: Mapping[str, AxisValue]) -> None:
        """ConfigurationError for values that click refuses, in its words."""
        try:
            self.command.make_context(f"partita {self.command.name}", self.arguments(values)).close()
        except click.ClickException as error:
            raise ConfigurationError(error.format_message()) from error


def _exists(path: str | Path) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a path, or with a zero in it
        return False


def _switch(option: click.Option, name: str, value: AxisValue) -> Iterable[str]:
    if not isinstance(value, bool):
        raise InvalidArgumentError(f"{name} is given or not; write true or false, not {shown(value)}")
    if value:
        return [f"--{name}"]
    return option.secondary_opts[:1]


def _items(value: AxisValue) -> list[AxisScalar]:
    """The items of a list, or the one value; nothing for what is left out."""
    if isinstance(value, tuple):
        return list(value)
    return [] if value is None or value is False else [value]


def _texts(name: str, values: Mapping[str, AxisValue], *, multiple: bool) -> list[str]:
    """What a flag is given: its own values and its parts, each alone, or all in one list."""
    texts = [_text(name, item) for item in _items(values.get(name))]
    dotted = f"{name}."
    for part, value in values.items():
        if part.startswith(dotted):
            texts += (f"{part.removeprefix(dotted)}={_text(part, item)}" for item in _items(value))
    return texts if multiple or not texts else [",".join(texts)]


def _text(name: str, item: AxisScalar) -> str:
    if item is True:
        raise InvalidArgumentError(f"{name} needs a value, which true is not; false leaves it out")
    return str(item)
