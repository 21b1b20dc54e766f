"""Calls handed to any executor, few at a time, and what each of them returned.

    for batch in settled(executor, [partial(cost, gpus=n) for n in (8, 16, 32)]):
        batch        [SettledCall(number=1, value=..., error=None)]      what has ended since the last batch

At most two calls a worker are in flight: one that runs, and one that is there when it ends. So a scheduler has little
to do, and nobody waits for a queue when the block is left. An executor says how many workers it has: dask by its
threads, the pools of the standard library by their size; any other is taken to have as many as there are cores.

When a worker of dask dies, all calls that it was given fail, though one at most is to blame. These are suspects: they
run again at the end, one at a time and with nothing beside them, and only what fails alike then has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

from ...devices.cores import num_cores
from ...errors import UnavailableError
from .dask_cluster import DaskExecutor, of_dask
from .processes import WorkerProcesses
from .serial import SerialExecutor

_A_WORKER = 2  # calls in flight
_DIED = "the dask workers that ran it died, the last one with nothing beside it"
_LOOK_AGAIN_S = 1.0  # for workers that a cluster has got meanwhile


_T = TypeVar("_T")
_Numbered = tuple[int, Callable[[], object]]


class SettledCall(NamedTuple):
    """What the call of that number returned, or the error that it ended with."""

    number: int
    value: Any  # Any: what the call returns
    error: BaseException | None


def settled(executor: Executor, calls: Iterable[Callable[[], object]]) -> Generator[list[SettledCall], None, None]:
    """What has ended, in batches; the calls are taken from their iterable when there is room for them.

    Raises UnavailableError when the executor takes no more calls, or cancels some. Where the block that iterates is
    left, calls in flight are cancelled.
    """
    flights = _Flights(of_dask(executor) or executor)
    suspects: list[_Numbered] = []
    try:
        waiting = enumerate(calls)
        while flights.fill(waiting):
            batch, suspected = flights.landed()
            suspects += suspected
            if batch:
                yield batch
        for suspect in suspects:
            flights.fill(iter([suspect]))
            while flights.flying:
                batch, again = flights.landed()
                batch += [SettledCall(index, None, UnavailableError(_DIED)) for index, _ in again]
                if batch:
                    yield batch
    finally:
        for future in flights.flying:
            future.cancel()


def in_order(
    executor: Executor, calls: Sequence[Callable[[], _T]], *, one_more: Callable[[], object] = lambda: None
) -> list[_T]:
    """What all calls return, in their order; `one_more` is called when one has ended.

    Raises the error of the first call of the list that fails, as if they had run one after another.
    """
    ended: dict[int, SettledCall] = {}
    in_row = 0  # how many from the first on have ended
    with closing(settled(executor, calls)) as batches:
        for batch in batches:
            for call in batch:
                ended[call.number] = call
                one_more()
            while in_row in ended:
                error = ended[in_row].error
                if error is not None:
                    raise error
                in_row += 1
    return [ended[index].value for index in range(len(calls))]


class _Flights:
    """The calls in flight, with their indices."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.flying: dict[Future[object], _Numbered] = {}

    def fill(self, waiting: Iterator[_Numbered]) -> bool:
        """Submits as many calls as there is room for; whether any is in flight."""
        most = _most_in_flight(self._executor)
        while len(self.flying) < most:
            numbered = next(waiting, None)
            if numbered is None:
                break
            try:
                self.flying[self._executor.submit(numbered[1])] = numbered
            except BrokenExecutor as error:
                raise _gone(error) from error
        return bool(self.flying)

    def landed(self) -> tuple[list[SettledCall], list[_Numbered]]:
        """Waits until a call has ended, or a moment; what has ended, and the calls that have lost their worker."""
        ended, _ = wait(self.flying, _LOOK_AGAIN_S, FIRST_COMPLETED)
        batch: list[SettledCall] = []
        suspects: list[_Numbered] = []
        for future in sorted(ended, key=lambda one: self.flying[one][0]):
            index, call = self.flying.pop(future)
            if future.cancelled():
                raise _gone("it has cancelled a call")
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                raise _gone(error) from error
            if error is not None and self._is_death(error):
                suspects.append((index, call))
            else:
                batch.append(SettledCall(index, None if error is not None else future.result(), error))
        return batch, suspects

    def _is_death(self, error: BaseException) -> bool:
        return isinstance(self._executor, DaskExecutor) and self._executor.is_death(error)


def _gone(why: object) -> UnavailableError:
    return UnavailableError(f"the executor takes no more calls: {why}; give another one")


def _most_in_flight(executor: Executor) -> int:
    """How many calls an executor is given at a time."""
    if isinstance(executor, SerialExecutor):
        return 1
    if isinstance(executor, WorkerProcesses):
        return _A_WORKER * executor.workers
    if isinstance(executor, DaskExecutor):
        return _A_WORKER * executor.threads()
    size = getattr(executor, "_max_workers", None)  # of the pools of the standard library and of those made like them
    return _A_WORKER * (size if isinstance(size, int) else num_cores())
