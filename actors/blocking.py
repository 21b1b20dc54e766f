"""A session for code without an event loop: scripts, notebooks, tests of other libraries.

Flows in: what `open_session` and `Session.run` take. Flows out: the same arrays and the same errors. Always holds:
one thread of its own runs trio and the session in it, from construction until `close`; calls from several threads are
served concurrently.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import trio

from ..errors import CancelledError
from .session import Session, open_session

if TYPE_CHECKING:
    from ..devices.cluster import Cluster
    from ..graph import GraphDef, RunMetadata, RunOptions
    from ..graph.dtypes import Array
    from ..graph.importer import Serialisable
    from .requests import Feeds


class BlockingSession:
    """`open_session` without async. Close it, or use it as a context manager."""

    def __init__(
        self,
        graph_def: GraphDef | Serialisable | bytes,
        devices: str | Cluster = "cpu:1",
        **settings: Any,  # as open_session
    ) -> None:
        """Opens the session in a thread; `settings` are the keywords of `open_session`. Raises as that does."""
        self._opened = Event()
        self._failure: BaseException | None = None
        self._session: Session | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._thread = Thread(
            target=trio.run, args=(self._serve, graph_def, devices, settings), name="partita session", daemon=True
        )
        self._thread.start()
        self._opened.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    async def _serve(
        self, graph_def: GraphDef | Serialisable | bytes, devices: str | Cluster, settings: dict[str, Any]
    ) -> None:
        """Keeps the session open until `close`."""
        self._stop, self._token = trio.Event(), trio.lowlevel.current_trio_token()
        try:
            async with open_session(graph_def, devices, **settings) as self._session:
                self._opened.set()
                await self._stop.wait()
        except BaseException as error:  # noqa: BLE001 - handed to the thread that constructs the session
            self._failure = error
        finally:
            self._opened.set()

    def run(
        self,
        fetches: str | Sequence[str],
        feeds: Feeds | None = None,
        targets: str | Sequence[str] = (),
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> list[Array]:
        """Runs one step; see `Session.run`."""
        session, token = self._session, self._token
        if session is None or token is None or not self._thread.is_alive():
            raise CancelledError("Session has been closed.")
        try:
            return trio.from_thread.run(session.run, fetches, feeds, targets, options, metadata, trio_token=token)
        except trio.RunFinishedError:
            raise CancelledError("Session has been closed.") from None

    @property
    def devices(self) -> list[str]:
        """Full names of the devices."""
        return [] if self._session is None else self._session.devices

    def close(self) -> None:
        """Ends the session and its thread; steps under way in other threads fail with CancelledError."""
        if self._token is not None and self._stop is not None and self._thread.is_alive():
            try:
                trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
            except trio.RunFinishedError:
                pass
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
