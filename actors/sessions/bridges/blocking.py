"""A session for code without an event loop, such as scripts and notebooks.

A thread runs trio and a `Session`, from the construction of the `BlockingSession` until `close`. Calls from several
threads run concurrently. Ctrl-C cancels the call that it interrupts; the session stays usable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import trio

from ....errors import CancelledError
from ..lifetime import session_closed
from ..local_session import open_session
from ..session import Session
from ..session_callable import SessionCallable
from .parameters import parameters_of_method

if TYPE_CHECKING:
    from pathlib import Path

    from ....devices.cluster import Cluster
    from ....graph import GraphDef
    from ....graph.dtypes import Array
    from ....graph.graphdef.sources import GraphSource

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# Any, of arguments and keywords: what they are is said by the decorator above the method.


def _waited(
    method: Callable[Concatenate[Session, _Parameters], Awaitable[_Result]],
) -> Callable[Concatenate[BlockingSession, _Parameters], _Result]:
    """A method of the session that waits; it has the parameters and the docstring of that in trio."""

    @wraps(method)
    def call(self: BlockingSession, /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        return self._wait_for(method, self._opened(), *arguments, **keywords)

    return call


def _waited_sync(
    method: Callable[Concatenate[Session, _Parameters], _Result],
) -> Callable[Concatenate[BlockingSession, _Parameters], _Result]:
    """As `_waited`, for a method that waits for nothing in trio."""

    @wraps(method)
    def call(self: BlockingSession, /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs) -> _Result:
        return self._wait_for_sync(method, self._opened(), *arguments, **keywords)

    return call


def _callable_from(
    method: Callable[Concatenate[Session, _Parameters], Awaitable[SessionCallable]],
) -> Callable[Concatenate[BlockingSession, _Parameters], BlockingCallable]:
    """As `_waited`, for a method that makes a callable, which waits too."""

    @wraps(method)
    def call(
        self: BlockingSession, /, *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> BlockingCallable:
        made = self._wait_for(method, self._opened(), *arguments, **keywords)
        return BlockingCallable(made, self._wait_for)

    return call


class BlockingSession:
    """A `Session` without async. Call `close` at the end, or use it as a context manager."""

    def __init__(
        self,
        graph_def: GraphSource,
        devices: str | Path | Cluster = "cpu:1",
        **settings: Any,  # as open_session
    ) -> None:
        """Opens the session in a thread; `settings` are the keywords of `open_session`. Raises as that does."""
        self._has_token, self._is_opened = Event(), Event()
        self._failure: BaseException | None = None
        self._session: Session | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._serving = trio.CancelScope()
        self._thread = Thread(
            target=trio.run, args=(self._serve, graph_def, devices, settings), name="partita session", daemon=True
        )
        self._is_abandoned = False
        try:
            self._thread.start()
            self._is_opened.wait()
            if self._failure is not None:
                raise self._failure
        except BaseException:  # Ctrl-C too: the caller does not get the session, so it cannot close it
            self._abandon()
            raise

    async def _serve(self, graph_def: GraphSource, devices: str | Path | Cluster, settings: dict[str, Any]) -> None:
        """Keeps the session open until `close`."""
        self._token = trio.lowlevel.current_trio_token()
        self._has_token.set()
        if self._is_abandoned:
            return
        try:
            with self._serving:
                async with open_session(graph_def, devices, **settings) as self._session:
                    self._is_opened.set()
                    await trio.sleep_forever()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that constructs the session
            self._failure = error
        finally:
            self._is_opened.set()

    def _abandon(self) -> None:
        """Ends the thread, which may not have begun and never will, or begins later: it looks after it has a token."""
        self._is_abandoned = True
        if self._has_token.is_set():
            self.close()

    run = _waited(Session.run)

    make_callable = _callable_from(Session.make_callable)
    make_callable_from_options = _callable_from(Session.make_callable_from_options)
    partial_run_setup = _waited(Session.partial_run_setup)
    partial_run = _waited(Session.partial_run)
    timeline = _waited(Session.timeline_in_thread)
    whole_timeline = _waited_sync(Session.whole_timeline)
    extend = _waited(Session.extend)
    restart_device = _waited_sync(Session.restart_device)
    statistics = _waited_sync(Session.statistics)

    @parameters_of_method(Session.reset)
    def reset(self, *arguments: Any, **keywords: Any) -> None:
        """Clears containers and closes the session; see `Session.reset`."""
        self._wait_for_sync(self._opened().reset, *arguments, **keywords)
        self.close()

    def _opened(self) -> Session:
        """The session; CancelledError once it is closed."""
        if self._session is None or not self._thread.is_alive():
            raise session_closed()
        return self._session

    def _wait_for(
        self,
        function: Callable[_Parameters, Awaitable[_Result]],
        *arguments: _Parameters.args,
        **keywords: _Parameters.kwargs,
    ) -> _Result:
        """Calls an async function in the session's thread and waits for its result; KeyboardInterrupt cancels it."""
        scope = trio.CancelScope()

        async def call() -> _Result:
            with scope:
                return await function(*arguments, **keywords)
            raise CancelledError("the thread that made the call was interrupted")

        try:
            return trio.from_thread.run(call, trio_token=self._token)
        except trio.RunFinishedError:
            raise session_closed() from None
        except KeyboardInterrupt:
            self._call_in_thread(scope.cancel)
            raise

    def _wait_for_sync(
        self, function: Callable[_Parameters, _Result], *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> _Result:
        """Calls a function that waits for nothing in the session's thread."""

        async def call() -> _Result:
            return function(*arguments, **keywords)

        return self._wait_for(call)

    def _call_in_thread(self, function: Callable[[], object]) -> None:
        """Calls a function in the session's thread later, unless that has ended."""
        assert self._token is not None  # set before `_has_token` and `_is_opened`
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            pass

    @property
    def now_ns(self) -> int:
        """The present simulated time; see `Session.now_ns`."""
        return self._opened().now_ns

    @property
    def graph_def(self) -> GraphDef:
        """The current graph; see `Session.graph_def`."""
        return self._opened().graph_def

    @property
    def devices(self) -> list[str]:
        """The names of the devices, the client's first; none once a session could not be opened."""
        return [] if self._session is None else self._session.devices

    def close(self) -> None:
        """Ends the session and its thread; running steps of other threads fail with CancelledError."""
        self._has_token.wait()
        self._call_in_thread(self._serving.cancel)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingCallable:
    """A `SessionCallable` without async. `BlockingSession.make_callable` makes it."""

    def __init__(self, session_callable: SessionCallable, wait_for: Callable[..., list[Array]]) -> None:
        """`wait_for` calls an async function with arguments in the session's thread."""
        self._session_callable = session_callable
        self._wait_for = wait_for

    @property
    def handle(self) -> int:
        """The number of the callable in its session."""
        return self._session_callable.handle

    @parameters_of_method(SessionCallable.__call__)
    def __call__(self, *values: Any, **keywords: Any) -> list[Array]:
        """Runs one step on values in the order of the feeds; see `SessionCallable.__call__`."""
        return self._wait_for(self._session_callable, *values, **keywords)

    def release(self) -> None:
        """Refuses later calls; see `SessionCallable.release`."""
        self._session_callable.release()
