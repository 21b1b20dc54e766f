"""A nanny that changes nothing in the process that starts it, and lets its own keep freed memory.

dask sets variables of the environment for a process before it starts it, and leaves them set: one BLAS thread, a seed
for hashes. Every process that the program starts later would have them too. They are put back once the last of the
processes that start at a time has started.

MALLOC_TRIM_THRESHOLD_ is not among them, unless the program has it: with it the C library gives back the memory of each
tensor, and gets new pages for the next step (see `devices/kernels/freed_memory.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from distributed import Nanny, Status

_TRIM = "MALLOC_TRIM_THRESHOLD_"


class _Borrowed:
    """Variables that are put back when the last block that borrows them ends; blocks may be in several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: dict[str, str | None] = {}
        self._users = 0

    @contextmanager
    def variables(self, names: Iterable[str]) -> Iterator[None]:
        """Inside the block variables of these names may be changed."""
        with self._lock:
            self._users += 1
            for name in names:
                self._before.setdefault(name, os.environ.get(name))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._put_back()

    def _put_back(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before = {}


_BORROWED = _Borrowed()


class SpawningNanny(Nanny):
    """The nanny of a local cluster."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:  # Any: as dask's
        super().__init__(*arguments, **keywords)
        if _TRIM not in os.environ:
            self.pre_spawn_env.pop(_TRIM, None)
            self.env.pop(_TRIM, None)

    async def instantiate(self) -> Status:
        """Starts the process, for the first time or again."""
        with _BORROWED.variables(self.pre_spawn_env):
            return await super().instantiate()
