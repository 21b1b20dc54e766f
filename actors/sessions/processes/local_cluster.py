"""Worker processes on this machine, for `workers=n`: started for a session, and ended with it.

They listen on the loopback only, because dask without TLS runs code for whoever reaches its ports. There is no
dashboard, no limit of memory and no spilling: at 95 % of a share of the memory dask would kill a process with all state
that is in it, where the same session in one process would go on.

Ctrl-C reaches all processes of a terminal. The workers do not hear it: the session ends them.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

import dask.config
from distributed import LocalCluster

from ....errors import InvalidArgumentError, UnavailableError
from .spawning_nanny import SpawningNanny

# Of the HTTP servers that dask starts in any case; with None they listen on all interfaces, the scheduler's on 8787.
_ANY_PORT = "127.0.0.1:0"
_MAX_PROCESSES = 1024  # more is a slip of the pen
_LOST_FOR_GOOD = "distributed.deploy.lost-worker-timeout"


class _PatientCluster(LocalCluster):
    """A cluster whose nannies start a dead process again, however often it dies.

    15 s after a loss dask gives a worker up for good that is away at that moment, also if it has come back meanwhile
    and has just died again.
    """

    def _update_worker_status(self, op: str, msg: object) -> None:
        with dask.config.set({_LOST_FOR_GOOD: "10000 days"}):
            super()._update_worker_status(op, msg)


def start_local_cluster(count: int, **scheduler: object) -> LocalCluster:
    """`count` processes of one thread each; blocks until they have started, 1 to 2 s. `scheduler` are its settings.

    Raises InvalidArgumentError unless 1 <= count <= 1024, UnavailableError if the processes do not start.
    """
    if not 1 <= count <= _MAX_PROCESSES:
        raise InvalidArgumentError(f"workers={count}: a number of processes is between 1 and {_MAX_PROCESSES}")
    try:
        with _interrupts_blocked():
            return _PatientCluster(
                n_workers=count,
                threads_per_worker=1,
                worker_class=SpawningNanny,
                host="127.0.0.1",
                dashboard_address=_ANY_PORT,
                worker_dashboard_address=_ANY_PORT,
                scheduler_kwargs={"dashboard": False, **scheduler},
                memory_limit=0,
                silence_logs=logging.CRITICAL,  # a worker that dies is the session's business, and said once
            )
    except Exception as error:
        raise UnavailableError(
            f"{count} worker processes do not start: {type(error).__name__}: {error} (a script that starts processes "
            'needs `if __name__ == "__main__":`)'
        ) from error


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Threads and processes that start here, and those that they start later, do not get SIGINT."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock the signal in the thread that needs it first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
