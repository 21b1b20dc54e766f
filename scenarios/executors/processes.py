"""Worker processes that survive the death of one: an executor for calls that may run out of memory or crash.

    WorkerProcesses(2)          worker 0: calls A, C    worker 1: calls B, D    one pool each
    B kills its process         B and D go to a new process, B first; A and C have noticed nothing
    B kills that one, too       its future gets an UnavailableError that names the signal; D goes on in the next process

`ProcessPoolExecutor` gives up all its calls when one process dies, so each worker has a pool of its own, and a pool
that broke is replaced. A pool of one process runs its calls in order: the first that has no answer is the one that was
running.

Each pool begins with a call that does nothing. If a process dies in that one, no call of the user is to blame: a module
that it imports at the start is wrong, say. When that happens twice in a row, no call can be run, and all of them say
so.

Processes are spawned, never forked, since other threads of this process may hold locks. They end when this process
ends, however it ends.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, ParamSpec, TypeVar

from ...devices.cores import num_cores
from ...errors import InvalidArgumentError, UnavailableError

_P = ParamSpec("_P")
_T = TypeVar("_T")
_DEATHS = 2  # of its process, after which a call is not tried again
_PATIENCE_S = 5.0  # for the system to say how a process ended that has ended
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerProcesses(Executor):
    """Calls in so many processes, by default one for each core; the calls, and what they return, are pickled.

    A call that kills its process is run once more. When it kills that one too, its future has an UnavailableError with
    the signal or the exit code, and all other calls go on. As a block, `with WorkerProcesses(4) as executor`, it waits
    for the calls at its end, and ends the processes at once if the block fails or is interrupted.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidArgumentError(f"{workers} worker processes are too few; give at least 1")
        self.workers = workers or num_cores()
        """how many processes"""
        self._lock = threading.RLock()  # callbacks come in a thread of each pool, or in that of `submit`
        self._slots = [_WorkerSlot(self._lock) for _ in range(self.workers)]
        self._is_shut = False

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Runs the call on the worker that has the fewest; raises BrokenExecutor where no process can be started."""
        call = _PendingCall(partial(fn, *args, **kwargs))
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            min(self._slots, key=lambda slot: len(slot.calls)).take(call)
        future: Future[Any] = call.future
        return future

    def process_ids(self) -> list[int]:
        """The ids of the worker processes that run now, for those who watch them."""
        with self._lock:
            alive = [process for slot in self._slots for process in slot.processes if process.is_alive()]
        return [process.pid for process in alive if process.pid is not None]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As of any executor. No call is taken any more."""
        with self._lock:
            self._is_shut = True
            pools = [slot.pool for slot in self._slots if slot.pool is not None]
        for pool in pools:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def kill(self) -> None:
        """Ends all processes at once, and with them all calls, which get a BrokenExecutor."""
        with self._lock:
            self._is_shut = True
            for slot in self._slots:
                slot.kill()
        for slot in self._slots:  # without the lock, which callbacks of the pools need
            if slot.pool is not None:
                slot.pool.shutdown()

    def __exit__(self, kind: object, *_: object) -> bool | None:
        if kind is None:
            self.shutdown()
        else:
            self.kill()
        return None


class _PendingCall:
    """A call, its future, and how many processes have died in it; `future` outlives the pools that the call was in."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.run = run
        self.future: Future[Any] = Future()  # Any: each call has a type of its own
        self.deaths = 0

    def end(self, result: object, error: BaseException | None) -> None:
        """Settles the future, unless it was cancelled while the call ran."""
        if self.future.cancelled() or not self.future.set_running_or_notify_cancel():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class _WorkerSlot:
    """One worker: the pool that it is now, and its calls that have no answer, in the order in which they run."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.calls: deque[_PendingCall] = deque()
        self.pool: ProcessPoolExecutor | None = None
        self.processes: list[SpawnProcess] = []
        self._failed_starts = 0
        self._is_killed = False

    def take(self, call: _PendingCall) -> None:
        """Appends a call. BrokenExecutor where processes end before they have begun."""
        if self._failed_starts >= _DEATHS:
            raise BrokenExecutor(_CANNOT_START)
        self.calls.append(call)
        if self.pool is None:
            self._renew()
        else:
            self._hand_over(self.pool, call)

    def kill(self) -> None:
        """Ends the process, and all calls, which get a BrokenExecutor."""
        self._is_killed = True
        for process in self.processes:
            process.kill()
        while self.calls:
            self.calls.popleft().end(None, BrokenExecutor("its process was ended, with all others"))

    def _renew(self) -> None:
        """A new pool for all calls that have no answer; the first that it runs does nothing."""
        self.processes = []
        self.pool = ProcessPoolExecutor(1, _noting(self.processes), initializer=_begin)
        self.pool.submit(_nothing).add_done_callback(partial(self._started, self.pool))
        for call in tuple(self.calls):
            self._hand_over(self.pool, call)

    def _started(self, pool: ProcessPoolExecutor, future: Future[None]) -> None:
        with self._lock:
            if pool is not self.pool or self._is_killed or future.cancelled():
                return
            if future.exception() is None:
                self._failed_starts = 0
            else:
                self._failed_starts += 1
                self._broke()

    def _hand_over(self, pool: ProcessPoolExecutor, call: _PendingCall) -> None:
        try:
            future = pool.submit(call.run)
        except BrokenExecutor:
            if pool is self.pool and self.calls[0] is call:  # the process died while it had nothing to do
                self._renew()
            return  # else: those before it are told that the pool broke, and all calls move to the next one
        future.add_done_callback(partial(self._done, pool, call))

    def _done(self, pool: ProcessPoolExecutor, call: _PendingCall, future: Future[object]) -> None:
        with self._lock:
            if pool is not self.pool or self._is_killed:
                return
            if future.cancelled():  # by a shutdown that asks for it
                self.calls.remove(call)
                call.future.cancel()
                call.future.set_running_or_notify_cancel()
                return
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                self._blame(self.calls[0])
                self._broke()
                return
            self.calls.remove(call)
        call.end(None if error is not None else future.result(), error)

    def _blame(self, call: _PendingCall) -> None:
        """Counts a death of the process in the call that was running; after the second the call has an error."""
        call.deaths += 1
        if call.deaths >= _DEATHS:
            self.calls.remove(call)
            call.end(None, UnavailableError(f"the process that ran it {self._ending()}, {call.deaths} times in a row"))

    def _broke(self) -> None:
        """Moves all calls to a new pool; where none starts they have an error."""
        if self._failed_starts < _DEATHS:
            self._renew()
            return
        for call in tuple(self.calls):
            self.calls.remove(call)
            call.end(None, BrokenExecutor(f"{_CANNOT_START}; the last one {self._ending()}"))

    def _ending(self) -> str:
        """How the process of the pool has ended: "was ended by signal 9 (SIGKILL)"."""
        process = self.processes[-1]
        process.join(_PATIENCE_S)
        code = process.exitcode
        if code is not None and code < 0:
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"


_CANNOT_START = (
    "worker processes end before they run anything: what they import at the start fails, as a script does that has its "
    'calls not below `if __name__ == "__main__":`'
)


def _noting(processes: list[SpawnProcess]) -> SpawnContext:
    """A context whose processes are spawned, and appended to a list: a pool does not say how its process ended."""

    def noted(*args: Any, **kwargs: Any) -> SpawnProcess:  # Any: as multiprocessing's
        process = SpawnProcess(*args, **kwargs)
        processes.append(process)
        return process

    context: Any = SpawnContext()  # Any: the class of its processes may be replaced, which its stubs do not say
    context.Process = noted
    result: SpawnContext = context
    return result


def _nothing() -> None:
    """The first call of a process."""


def _begin() -> None:
    """In a new process: Ctrl-C is for its parent, linear algebra has one thread, and it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "numpy" in sys.modules:
        import_module("threadpoolctl").threadpool_limits(1)
    else:
        os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A pool's process waits for calls forever when its parent was killed: nothing else would end it."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # this process was spawned
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)
