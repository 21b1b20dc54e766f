"""Registrations by installed packages: modules that entry points name, imported when they may matter.

An installed package adds ops or kinds of devices by an entry point in its pyproject.toml, whose value is a module that
registers them while it is imported:

    [project.entry-points."partita.ops"]
    acme = "acme_ops.smoothing"

    [project.entry-points."partita.device_kinds"]
    acme = "acme_ops.npu"

A group is read once in a process, at the first look-up of a name that the registry lacks, so that a program which uses
built-in names alone imports nothing.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from ...errors import InvalidArgumentError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OPS = "partita.ops"
DEVICE_KINDS = "partita.device_kinds"

_lock = RLock()  # other threads wait for the modules; the thread that imports them looks up names meanwhile
_read: dict[str, InvalidArgumentError | None] = {}


def import_installed(group: str) -> None:
    """Imports the modules of all entry points of `group`, by name, at the first call in the process.

    Raises InvalidArgumentError, at every call, if a module cannot be imported.
    """
    with _lock:
        if group not in _read:
            _read[group] = None  # while the modules are imported, their names are looked up as well
            _read[group] = _import_all(group)
        error = _read[group]
    if error is not None:
        raise error


def _import_all(group: str) -> InvalidArgumentError | None:
    """The error of the first module that cannot be imported."""
    from importlib.metadata import entry_points  # here, as it takes 12 ms and most processes never come so far

    try:
        for entry in sorted(entry_points(group=group)):
            _import(entry)
    except InvalidArgumentError as error:
        return error
    return None


def _import(entry: EntryPoint) -> None:
    remedy = "mend or remove its package"
    if entry.attr:
        raise InvalidArgumentError(
            f"entry point {entry.name!r} of {entry.group!r}, {entry.value!r}, must name a module and no part of one; "
            + remedy
        )
    try:
        entry.load()
    except Exception as error:
        raise InvalidArgumentError(
            f"the module {entry.value!r}, entry point {entry.name!r} of {entry.group!r}, cannot be imported: "
            f"{error!r}; {remedy}"
        ) from error
