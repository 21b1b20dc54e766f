"""A cluster of dask.distributed as an executor: one that runs somewhere, or a local one for the length of a block.

    with dask_cluster(address="tcp://10.0.0.7:8786") as executor: ...       a running cluster; it stays
    with dask_cluster(workers=4) as executor: ...                          processes of this machine; they go at the end

The local cluster listens on the loopback alone: whoever reaches the ports of a cluster without TLS can run code there.
Nothing of dask is imported before a block begins; it comes with the extra `dask`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from importlib import import_module
from time import monotonic
from typing import Any, ParamSpec, TypeVar

from ...devices.cores import num_cores
from ...errors import InvalidArgumentError, UnavailableError, UnimplementedError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_LOOK_AGAIN_S = 1.0  # for the workers of a cluster: asking takes some milliseconds
_CONNECT_S = 10.0
_AT_ONCE_S = 0.5  # after less, dask finds that a process it killed has not ended yet
INSTALL = "pip install 'partita[dask]'"


class DaskExecutor(Executor):
    """The executor of a `distributed.Client`, which says how many threads there are, and which errors are deaths."""

    def __init__(self, client: Any) -> None:  # Any: dask is an extra, whose types a checker need not have
        self.client = client
        self._executor: Any = client.get_executor(pure=False, retries=0)  # Any: likewise
        self._threads, self._asked_at = 0, -_LOOK_AGAIN_S

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Runs the call on a worker, which imports its function by name."""
        future: Future[_T] = self._executor.submit(fn, *args, **kwargs)
        return future

    def threads(self) -> int:
        """The threads of all workers; 1 where none has come yet. UnavailableError where the cluster is gone."""
        now = monotonic()
        if now - self._asked_at >= _LOOK_AGAIN_S:
            try:
                self._threads, self._asked_at = sum(self.client.nthreads().values()), now
            except (OSError, RuntimeError) as error:  # what a client of a scheduler that is gone raises
                raise UnavailableError(f"the dask cluster does not answer: {error}; look at its scheduler") from error
        return max(self._threads, 1)

    def is_death(self, error: BaseException | None) -> bool:
        """Whether workers have died that were given the call."""
        return isinstance(error, _distributed().KilledWorker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As of any executor; the client and the cluster stay."""
        self._executor.shutdown(wait=wait and not cancel_futures)


def of_dask(executor: object) -> DaskExecutor | None:
    """The executor for a `Client` of dask, or for what its `get_executor()` returns; None for anything else."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    if isinstance(executor, distributed.Client):
        return DaskExecutor(executor)
    if isinstance(executor, distributed.cfexecutor.ClientExecutor):
        return DaskExecutor(
            executor._client
        )  # which it tells nobody: without it nobody knows how many workers there are
    return None


@contextmanager
def dask_cluster(address: str | None = None, workers: int | None = None) -> Iterator[DaskExecutor]:
    """A cluster at an address, or a local one of so many processes, by default one for each core.

    Raises UnimplementedError without dask, InvalidArgumentError for an address that is none, UnavailableError where no
    scheduler answers, FailedPreconditionError where a worker has no Partita, or other versions than this process.
    """
    distributed = _distributed()
    if address is not None:
        with _connected(distributed, address) as client:
            client.sync(_own("probing").check_workers, client._run)
            yield DaskExecutor(client)
        return
    # Calls that lose their worker are run again here, alone.
    cluster = _own("local_cluster").start_local_cluster(workers or num_cores(), allowed_failures=0)
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        try:
            yield DaskExecutor(client)
        except BaseException:
            cluster.sync(_end_workers, cluster)
            raise


async def _end_workers(cluster: Any) -> None:  # Any: as above
    """Ends the processes of a local cluster at once: else it waits some seconds for what runs in them."""
    closing = [nanny.close(timeout=_AT_ONCE_S) for nanny in cluster.workers.values()]
    await import_module("tornado.gen").multi(closing)


@contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:  # Any: as above
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except ValueError as error:
        raise InvalidArgumentError(
            f"{address!r} is no address of a scheduler: {error}; write tcp://HOST:8786"
        ) from error
    except OSError as error:  # its TimeoutError is one, too
        raise UnavailableError(
            f"no dask scheduler answers at {address!r}: {error}; start one with dask scheduler"
        ) from None
    with client:
        yield client


def _own(module: str) -> Any:  # Any: as above
    """A module of sessions over worker processes, which import dask."""
    return import_module(f"...actors.sessions.processes.{module}", __package__)


def _distributed() -> Any:  # Any: as above
    try:
        return import_module("distributed")
    except ImportError:
        raise UnimplementedError(
            f"the executor dask needs the package distributed; install it with {INSTALL}"
        ) from None
