"""What dask tells about its workers before anything of Partita runs there.

`run` is `Client.run` of dask, awaited in the client's loop. The functions that it is given are found by their names in
each worker, and are of the standard library, so the answer is right where Partita is missing or another one, and where
Python is another one.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Mapping, Sequence
from typing import Protocol

from .versions import NOT_INSTALLED, PACKAGES, UNKNOWN, check, minor


class RunEverywhere(Protocol):
    """Calls a function in workers; results by address, an exception where it raised one."""

    async def __call__(
        self, function: object, *arguments: str, workers: Sequence[str] | None, on_error: str
    ) -> Mapping[str, object]: ...


async def probe(run: RunEverywhere, workers: Sequence[str] | None = None) -> dict[str, dict[str, str]]:
    """Versions by the address of the worker, of all workers if none are named; without those that leave meanwhile."""
    pythons = await run(platform.python_version, workers=workers, on_error="return")
    versions = {address: {"python": minor(text)} for address, text in pythons.items() if isinstance(text, str)}
    for package in PACKAGES:
        answers = await run(importlib.metadata.version, package, workers=workers, on_error="return")
        silent = [address for address, answer in answers.items() if not isinstance(answer, str)]
        # A checkout on the path has no metadata.
        specs = await run(importlib.util.find_spec, package, workers=silent, on_error="return") if silent else {}
        for address in versions.keys() & answers.keys():
            versions[address][package] = _version(answers[address], specs.get(address))
    return versions


def _version(answer: object, spec: object) -> str:
    if isinstance(answer, str):
        return answer
    return NOT_INSTALLED if spec is None or isinstance(spec, BaseException) else UNKNOWN


async def check_workers(run: RunEverywhere, workers: Sequence[str] | None = None) -> None:
    """Raises FailedPreconditionError that names the first worker that has other versions, or no Partita."""
    versions = await probe(run, workers)
    for address in sorted(versions):
        check(address, versions[address])
