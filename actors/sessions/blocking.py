"""A session for code without an event loop: scripts, notebooks, tests of other libraries.

Flows in: what `open_session` and `Session.run` take. Flows out: the same arrays and the same errors. Always holds:
one thread of its own runs trio and the session in it, from construction until `close`; calls from several threads are
served concurrently; a call that Ctrl-C interrupts is cancelled, and the session stays usable.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy.typing as npt
import trio

from ...errors import CancelledError
from .session import Session, open_session

if TYPE_CHECKING:
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...graph import GraphDef, RunMetadata, RunOptions
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graphdef.sources import GraphSource
    from ..running.ports import Feeds
    from .session_callable import SessionCallable

_Result = TypeVar("_Result")


class BlockingSession:
    """`open_session` without async. Close it, or use it as a context manager."""

    def __init__(
        self,
        graph_def: GraphSource,
        devices: str | Path | Cluster = "cpu:1",
        **settings: Any,  # as open_session
    ) -> None:
        """Opens the session in a thread; `settings` are the keywords of `open_session`. Raises as that does."""
        self._begun, self._opened = Event(), Event()
        self._failure: BaseException | None = None
        self._session: Session | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._serving = trio.CancelScope()
        self._thread = Thread(
            target=trio.run, args=(self._serve, graph_def, devices, settings), name="partita session", daemon=True
        )
        self._thread.start()
        try:
            self._opened.wait()
        except BaseException:  # Ctrl-C: nobody will ever hold this session
            self.close()
            raise
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    async def _serve(self, graph_def: GraphSource, devices: str | Path | Cluster, settings: dict[str, Any]) -> None:
        """Keeps the session open until `close`."""
        self._token = trio.lowlevel.current_trio_token()
        self._begun.set()
        try:
            with self._serving:
                async with open_session(graph_def, devices, **settings) as self._session:
                    self._opened.set()
                    await trio.sleep_forever()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that constructs the session
            self._failure = error
        finally:
            self._opened.set()

    def run(
        self,
        fetches: Names,
        feeds: Feeds | None = None,
        targets: Names = (),
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Array]:
        """Runs one step; see `Session.run`."""
        return self._wait_for(self._open().run, fetches, feeds, targets, options, metadata)

    def make_callable(
        self,
        feeds: Names,
        fetches: Names,
        targets: Names = (),
        options: RunOptions | None = None,
    ) -> BlockingCallable:
        """Names a request once; see `Session.make_callable`."""
        made = self._wait_for(self._open().make_callable, feeds, fetches, targets, options)
        return BlockingCallable(made, partial(self._wait_for, made))

    def partial_run_setup(self, fetches: Names, feeds: Names, targets: Names = ()) -> str:
        """Begins a step that is fed and fetched from in several calls; see `Session.partial_run_setup`."""
        return self._wait_for(self._open().partial_run_setup, fetches, feeds, targets)

    def partial_run(self, handle: str, fetches: Names = (), feeds: Feeds | None = None) -> list[Array]:
        """Goes on with such a step; see `Session.partial_run`."""
        return self._wait_for(self._open().partial_run, handle, fetches, feeds)

    def extend(self, graph_def: GraphSource) -> None:
        """Adds nodes to the graph; see `Session.extend`."""
        self._wait_for(self._open().extend, graph_def)

    def _open(self) -> Session:
        """The session; CancelledError once it is closed."""
        if self._session is None or not self._thread.is_alive():
            raise _closed()
        return self._session

    def _wait_for(self, function: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:  # Any: passed on
        """What an async function of the session returns; a call that its thread stops waiting for is cancelled."""
        scope = trio.CancelScope()

        async def call() -> _Result:
            with scope:
                return await function(*arguments)
            raise CancelledError("the thread that made the call was interrupted")

        try:
            return trio.from_thread.run(call, trio_token=self._token)
        except trio.RunFinishedError:
            raise _closed() from None
        except KeyboardInterrupt:
            self._from_thread(scope.cancel)
            raise

    def _from_thread(self, function: Callable[[], object]) -> None:
        """Has a function called in the session's thread, unless that has ended."""
        assert self._token is not None  # the thread sets it before it lets anybody go on
        try:
            self._token.run_sync_soon(function)
        except trio.RunFinishedError:
            pass

    @property
    def graph_def(self) -> GraphDef:
        """The graph as it is now; see `Session.graph_def`."""
        return self._open().graph_def

    @property
    def devices(self) -> list[str]:
        """Full names of the devices."""
        return [] if self._session is None else self._session.devices

    def close(self) -> None:
        """Ends the session and its thread; steps under way in other threads fail with CancelledError."""
        self._begun.wait()
        self._from_thread(self._serving.cancel)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingCallable:
    """A `SessionCallable` without async. Made by `BlockingSession.make_callable`."""

    def __init__(self, made: SessionCallable, run: Callable[..., list[Array]]) -> None:
        self._made = made
        self._run = run

    def __call__(self, *values: npt.ArrayLike) -> list[Array]:
        """Runs one step on values in the order of the feeds; see `SessionCallable`."""
        return self._run(*values)

    def release(self) -> None:
        """Lets go of the request; see `SessionCallable.release`."""
        self._made.release()


def _closed() -> CancelledError:
    return CancelledError("Session has been closed.")
