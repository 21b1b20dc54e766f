"""The executor that flags name: `--executor`, `--workers`, `--address`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass

from ...errors import InvalidArgumentError
from .dask_cluster import dask_cluster
from .processes import WorkerProcesses
from .serial import SerialExecutor

SERIAL, PROCESSES, DASK = ("serial", "processes", "dask")


@dataclass(frozen=True, slots=True)
class ExecutorChoice:
    """What the flags say; None for one that is not given."""

    executor: str | None = None
    workers: int | None = None
    address: str | None = None
    usual: str = SERIAL
    """the executor of the command where no flag tells"""

    @property
    def name(self) -> str:
        """The executor; an address is one of dask, and workers need processes."""
        if self.executor is not None:
            return self.executor
        if self.address is not None:
            return DASK
        return PROCESSES if self.workers is not None else self.usual

    @property
    def first_given(self) -> str:
        """The first flag that is given; "" if none is."""
        flags = {"--executor": self.executor, "--workers": self.workers, "--address": self.address}
        return next((flag for flag, value in flags.items() if value is not None), "")

    def check(self) -> None:
        """InvalidArgumentError for flags that exclude each other."""
        if self.address is not None and self.name != DASK:
            raise InvalidArgumentError(f"--address is of a dask scheduler; leave it or --executor {self.name} out")
        if self.workers is not None and self.address is not None:
            raise InvalidArgumentError("--workers starts workers, a cluster at an --address has its own; leave one out")
        if self.workers is not None and self.name == SERIAL:
            raise InvalidArgumentError("--workers: one process runs everything with --executor serial; leave one out")

    @contextmanager
    def opened(self) -> Iterator[Executor]:
        """The executor, for the length of a block; raises as `check` and `dask_cluster`."""
        self.check()
        if self.name == DASK:
            with dask_cluster(self.address, self.workers) as cluster:
                yield cluster
        elif self.name == PROCESSES:
            with WorkerProcesses(self.workers) as processes:
                yield processes
        else:
            yield SerialExecutor()
