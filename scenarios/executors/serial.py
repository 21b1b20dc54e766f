"""An executor that runs each call at once, in the thread that submits it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class SerialExecutor(Executor):
    """One call after another, in this process: to look into one with a debugger, or to compare with."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """A future that is done. Only Ctrl-C and the like come out of the call itself."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is the caller's, who asks the future for it
            future.set_exception(error)
        return future
