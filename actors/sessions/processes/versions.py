"""What must be equal in all processes of a session, and how a process is told from another.

Two processes that place, cut and compile the same graph each for itself must come to the same result, so all that takes
part in that must have the same version. Versions are asked in two steps, because the first must work where Partita is
missing:

    probe    probing.py: functions of the standard library, called by dask in each worker, before the plugin is there
    about    in Partita itself, once it is known to be there: the same, the format of messages, and the process
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import uuid
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ....devices.wire import FORMAT
from ....errors import FailedPreconditionError

if TYPE_CHECKING:
    from distributed import Worker

PACKAGES = ("partita", "numpy", "ml_dtypes")
NOT_INSTALLED = "not installed"
UNKNOWN = "of unknown version"  # of a package that is there without metadata, such as a checkout on the path
_WORDS = {"python": "Python", "partita": "Partita", "format": "the message format"}


@cache
def _process_id(_pid: int) -> str:
    return uuid.uuid4().hex


def process_id() -> str:
    """32 hex digits of this process; another process, also a forked one, has others."""
    return _process_id(os.getpid())


def minor(python: str) -> str:
    """3.11 of 3.11.7."""
    return ".".join(python.split(".")[:2])


def package_version(name: str) -> str:
    """The version of an installed package; UNKNOWN if it says none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


@cache
def versions_here() -> Mapping[str, str]:
    """What is compared, of this process: Python's minor version, packages, and the format of messages."""
    packages = {name: package_version(name) for name in PACKAGES}
    return {"python": minor(platform.python_version()), **packages, "format": str(FORMAT)}


def about() -> dict[str, object]:
    """What a worker answers to who connects."""
    return {"process_id": process_id(), "versions": dict(versions_here())}


def about_worker(dask_worker: Worker) -> dict[str, object]:
    """What a worker says of itself when `Client.run` asks; dask fills in the argument by its name."""
    return {"process_id": process_id(), "pid": os.getpid(), "name": str(dask_worker.name)}


def check(worker: str, theirs: Mapping[str, str], ours: Mapping[str, str] | None = None) -> None:
    """Raises FailedPreconditionError if a worker has other versions, naming it and both; compares what both name.

    `worker` is its name or address, for the error.
    """
    ours = versions_here() if ours is None else ours
    if theirs.get("partita") == NOT_INSTALLED:
        raise FailedPreconditionError(
            f"the worker {worker} has no Partita: install partita {ours['partita']} in the environment of the workers"
        )
    wrong = [
        f"{_WORDS.get(name, name)} {theirs[name]}, this process {version}"
        for name, version in ours.items()
        if name in theirs and theirs[name] != version
    ]
    if wrong:
        raise FailedPreconditionError(
            f"the worker {worker} has {'; '.join(wrong)}: install the same versions in the environment of the workers"
        )
