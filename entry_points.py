"""What installed packages add under the name of an entry point, for registries that look by name.

names_of("partita.passes")                       ["on_npu"], without importing anything
loaded("partita.passes", "on_npu", "pass")       the value of that entry point, imported

`importlib.metadata` takes over 10 ms to import, and a process that uses built-in names alone does without it.
"""

from __future__ import annotations

from typing import NamedTuple

from .errors import InvalidArgumentError


class Installed(NamedTuple):
    """The value of an entry point, and the text that names it in its package's metadata: "acme.passes:ON_NPU"."""

    value: object
    place: str


def names_of(group: str) -> list[str]:
    """The names of the entry points of a group, sorted."""
    from importlib.metadata import entry_points  # see above

    return sorted({entry.name for entry in entry_points(group=group)})


def loaded(group: str, name: str, what: str) -> Installed | None:
    """The entry point of a name, None if no package has one.

    `what` says what it is in the InvalidArgumentError for one that cannot be imported.
    """
    from importlib.metadata import entry_points  # see above

    for entry in entry_points(group=group, name=name):
        try:
            return Installed(entry.load(), entry.value)
        except Exception as error:
            raise InvalidArgumentError(
                f"{what} {name!r}, {entry.value!r}, cannot be loaded: {error!r}; mend or remove its package"
            ) from error
    return None
