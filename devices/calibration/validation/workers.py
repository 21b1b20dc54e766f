"""From jobs or calls to their answers, in their order; long ones run side by side, in processes of their own.

Starting a process takes about as long as a small fit, so short jobs run here, one after another, and long ones in a
pool if there are several. Linear algebra uses one thread in both places: the answers are the same bits wherever a job
ran, and two workers do not fight for two cores. Ctrl-C ends the workers at once.
"""

from __future__ import annotations

import importlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from ....graph.display.progress import ProgressCallback, counted
from ...cores import num_cores
from .measured_set import Job, RowPredictions

_T = TypeVar("_T")


def run_jobs(jobs: Sequence[Job], on_progress: ProgressCallback) -> list[RowPredictions]:
    """The answers in the order of the jobs; `on_progress` is told of each that is done.

    Raises what the first failing job of the list raised.
    """
    one_more = counted(on_progress, "fitting and predicting", len(jobs), "jobs")
    return run_calls([job.run for job in jobs], [i for i, job in enumerate(jobs) if job.is_long], one_more)


def run_calls(calls: Sequence[Callable[[], _T]], long: Sequence[int], one_more: Callable[[], None]) -> list[_T]:
    """What each call returns; `one_more` is called when one has. Raises as `run_jobs`.

    `long` are the indices of those that are long, which can be pickled.
    """
    if len(long) < 2 or num_cores() < 2:
        long = []
    answers: dict[int, _T] = {}
    with _pool(min(len(long), num_cores())) as pool:
        futures: dict[int, Future[_T]] = {}
        if pool is not None:
            futures = {i: pool.submit(_alone, calls[i]) for i in long}
        for i, call in enumerate(calls):
            if i not in futures:
                answers[i] = _alone(call)
                one_more()
        for done in as_completed(futures.values()):
            if done.exception() is not None:
                break
            one_more()
        answers |= {i: future.result() for i, future in futures.items()}
    return [answers[i] for i in range(len(calls))]


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """A pool, or None for no workers. A body that fails or is interrupted leaves no worker behind."""
    if not workers:
        yield None
        return
    before = set(multiprocessing.active_children())
    # Spawned: a fork would copy locks that other threads of this process may hold.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_quiet)
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise


def _quiet() -> None:
    """In a worker: Ctrl-C reaches every process of a terminal, and the parent ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _alone(run: Callable[[], _T]) -> _T:
    with _one_thread():
        return run()


def _one_thread() -> AbstractContextManager[object]:
    """Linear algebra on one thread: there is a process for each core."""
    limits: AbstractContextManager[object] = importlib.import_module("threadpoolctl").threadpool_limits(1)
    return limits
