"""What installed packages add by entry points in their pyproject.toml, for registries that look by name.

    [project.entry-points."partita.passes"]         an entry names a value, loaded when its name is asked for
    spread = "acme.passes:SPREAD"

    [project.entry-points."partita.ops"]            an entry names a module, which registers ops while it is imported
    acme = "acme.smoothing"

names_of("partita.passes")                       ["spread"], without importing anything
loaded("partita.passes", "spread", "pass")       the value of that entry point, imported
import_modules("partita.ops")                    imports acme.smoothing, at the first call in the process

`importlib.metadata` takes over 10 ms to import, and a process that uses built-in names alone does without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_REMEDY = "mend or remove its package"

_lock = RLock()  # other threads wait for the modules; the thread that imports them looks up names meanwhile
_read: dict[str, InvalidArgumentError | None] = {}


class Installed(NamedTuple):
    """The value of an entry point, and the text that names it in its package's metadata: "acme.passes:SPREAD"."""

    value: object
    place: str


def _entries(group: str) -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # see above

    return entry_points(group=group)


def names_of(group: str) -> list[str]:
    """The names of the entry points of a group, sorted."""
    return sorted({entry.name for entry in _entries(group)})


def loaded(group: str, name: str, what: str) -> Installed | None:
    """The entry point of a name, None if no package has one.

    `what` says what it is in the InvalidArgumentError for one that cannot be imported.
    """
    entry = next((entry for entry in _entries(group) if entry.name == name), None)
    if entry is None:
        return None
    try:
        return Installed(entry.load(), entry.value)
    except Exception as error:
        raise InvalidArgumentError(
            f"{what} {name!r}, {entry.value!r}, cannot be loaded: {error!r}; {_REMEDY}"
        ) from error


def import_modules(group: str) -> None:
    """Imports the modules of all entry points of `group`, by name, at the first call in the process.

    A registry calls it at the first look-up of a name that it lacks. Raises InvalidArgumentError, at every call, if a
    module cannot be imported.
    """
    with _lock:
        if group not in _read:
            _read[group] = None  # while the modules are imported, their names are looked up as well
            try:
                for entry in sorted(_entries(group)):
                    _import(entry)
            except InvalidArgumentError as error:
                _read[group] = error
        failure = _read[group]
    if failure is not None:
        raise failure


def _import(entry: EntryPoint) -> None:
    if entry.attr:
        raise InvalidArgumentError(
            f"entry point {entry.name!r} of {entry.group!r}, {entry.value!r}, must name a module and no part of one; "
            + _REMEDY
        )
    try:
        entry.load()
    except Exception as error:
        raise InvalidArgumentError(
            f"the module {entry.value!r}, entry point {entry.name!r} of {entry.group!r}, cannot be imported: "
            f"{error!r}; {_REMEDY}"
        ) from error
