"""Sessions in asyncio programs: trio runs as a guest of the loop, and a call is a task there.

    async with open_asyncio_session(graph, "gpu:2") as session:
        (loss,) = await session.run("loss")

All sessions of a loop share one guest, since a thread has one trio at most; the last one that ends, ends it.

    asyncio task --call--> task of trio --result or error--> future

A cancelled asyncio task cancels the scope of its call, and ends when that has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import outcome
import trio

from ...errors import CancelledError, FailedPreconditionError
from .local_session import open_session

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ...devices.cluster import Cluster
    from ...devices.timing import Timeline
    from ...devices.timing.session_timeline import SessionTimeline
    from ...graph import CallableOptions, GraphDef, RunMetadata, RunOptions
    from ...graph.builder.tensor_names import Names
    from ...graph.dtypes import Array
    from ...graph.graphdef.sources import GraphSource
    from ..running.ports import Feeds
    from .session import Session
    from .session_callable import SessionCallable
    from .virtual_sessions import StepRecording

_T = TypeVar("_T")


class _Guest:
    """A run of trio in the loop of asyncio, from the first session of the loop to the last."""

    def __init__(self) -> None:
        self.users = 0
        self._loop = asyncio.get_running_loop()
        self._is_open = self._loop.create_future()
        self._has_ended = self._loop.create_future()
        self._nursery: trio.Nursery | None = None

    async def start(self) -> None:
        """Returns when trio runs. FailedPreconditionError where trio runs in this thread already."""
        try:
            trio.lowlevel.start_guest_run(
                self._main,
                run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
                done_callback=self._ended,
                host_uses_signal_set_wakeup_fd=True,
            )
        except RuntimeError as error:
            raise FailedPreconditionError(f"trio cannot be a guest of this event loop: {error}") from None
        await asyncio.shield(self._is_open)

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            self._is_open.set_result(None)
            await trio.sleep_forever()

    def _ended(self, result: outcome.Outcome[None]) -> None:
        self._has_ended.set_result(None)

    async def stop(self) -> None:
        """Ends trio; returns when it has ended, also if the caller is cancelled meanwhile."""
        assert self._nursery is not None  # `start` has returned
        self._nursery.cancel_scope.cancel()
        await _uninterrupted(self._has_ended, lambda: None)

    async def call(self, function: Callable[..., Awaitable[_T]], *arguments: Any) -> _T:  # Any: passed on
        """Calls an async function in a task of trio; its error comes out bare."""
        assert self._nursery is not None  # `start` has returned
        done: asyncio.Future[outcome.Outcome[_T]] = self._loop.create_future()
        scope = trio.CancelScope()

        async def task() -> None:
            result: outcome.Outcome[_T] = outcome.Error(CancelledError("the event loop of the session has ended"))
            try:
                with scope:
                    try:
                        result = outcome.Value(await function(*arguments))
                    except trio.Cancelled:
                        raise
                    except BaseException as error:  # noqa: BLE001 - raised in the task of asyncio
                        result = outcome.Error(error)
            finally:
                done.set_result(result)

        self._nursery.start_soon(task)
        return (await _uninterrupted(done, scope.cancel)).unwrap()


async def _uninterrupted(future: asyncio.Future[_T], cancel: Callable[[], object]) -> _T:
    """Waits for a future to the end; if the caller is cancelled, `cancel` is called, and CancelledError raised then."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
            cancel()
    if cancelled is not None:
        raise cancelled
    return future.result()


_GUESTS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Guest] = WeakKeyDictionary()
_STARTING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def _guest() -> AsyncIterator[_Guest]:
    """The guest of the running loop, which is started for the first user and ended by the last one."""
    loop = asyncio.get_running_loop()
    lock = _STARTING.setdefault(loop, asyncio.Lock())
    async with lock:
        guest = _GUESTS.get(loop)
        if guest is None:
            guest = _Guest()
            await guest.start()
            _GUESTS[loop] = guest
        guest.users += 1
    try:
        yield guest
    finally:
        guest.users -= 1
        if not guest.users:
            del _GUESTS[loop]
            await guest.stop()


class AsyncioSession:
    """A `Session` whose methods are awaited in asyncio; `open_asyncio_session` opens it."""

    def __init__(self, session: Session, guest: _Guest) -> None:
        self._session = session
        self._guest = guest

    async def run(
        self,
        fetches: Names,
        feeds: Feeds | None = None,
        targets: Names = (),
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
        recording: StepRecording | None = None,
    ) -> list[Array]:
        """Runs one step; see `Session.run`."""
        return await self._guest.call(self._session.run, fetches, feeds, targets, options, metadata, recording)

    async def make_callable(
        self, feeds: Names, fetches: Names, targets: Names = (), options: RunOptions | None = None
    ) -> Callable[..., Awaitable[list[Array]]]:
        """Prepares a request to be called, and awaited, with values; see `Session.make_callable`."""
        made = await self._guest.call(self._session.make_callable, feeds, fetches, targets, options)
        return partial(self._called, made)

    async def make_callable_from_options(self, options: CallableOptions) -> Callable[..., Awaitable[list[Array]]]:
        """Prepares a request as TensorFlow's message says; see `Session.make_callable_from_options`."""
        return partial(self._called, await self._guest.call(self._session.make_callable_from_options, options))

    async def _called(
        self,
        made: SessionCallable,
        *values: Any,
        metadata: RunMetadata | None = None,
        recording: StepRecording | None = None,
    ) -> list[Array]:  # Any: arrays and numbers, as in `SessionCallable`
        return await self._guest.call(partial(made, *values, metadata=metadata, recording=recording))

    async def partial_run_setup(self, fetches: Names, feeds: Names, targets: Names = ()) -> str:
        """Starts a step that is fed and fetched in several calls; see `Session.partial_run_setup`."""
        return await self._guest.call(self._session.partial_run_setup, fetches, feeds, targets)

    async def partial_run(self, handle: str, fetches: Names = (), feeds: Feeds | None = None) -> list[Array]:
        """Continues such a step; see `Session.partial_run`."""
        return await self._guest.call(self._session.partial_run, handle, fetches, feeds)

    async def extend(self, graph_def: GraphSource, *, current_version: int | None = None) -> int:
        """Adds nodes to the graph and returns its version; see `Session.extend`."""
        return await self._guest.call(partial(self._session.extend, graph_def, current_version=current_version))

    async def timeline(self) -> Timeline:
        """The last finished step of a session on a virtual clock; see `Session.timeline`."""
        return await self._synchronous(self._session.timeline)

    async def whole_timeline(self) -> SessionTimeline:
        """All steps of a session on a virtual clock until now; see `Session.whole_timeline`."""
        return await self._synchronous(self._session.whole_timeline)

    async def reset(self, containers: Sequence[str] = ()) -> None:
        """Clears containers and closes the session; see `Session.reset`."""
        await self._synchronous(partial(self._session.reset, containers))

    async def _synchronous(self, function: Callable[[], _T]) -> _T:
        async def call() -> _T:
            return function()

        return await self._guest.call(call)

    @property
    def now_ns(self) -> int:
        """The present simulated time; see `Session.now_ns`."""
        return self._session.now_ns

    @property
    def graph_def(self) -> GraphDef:
        """The current graph; see `Session.graph_def`."""
        return self._session.graph_def

    @property
    def devices(self) -> list[str]:
        """The names of the devices, the client's first."""
        return self._session.devices


@asynccontextmanager
async def _opened(manager: AbstractAsyncContextManager[Session]) -> AsyncIterator[AsyncioSession]:
    """Enters and leaves the block of a session in one task of trio, around the block of asyncio."""
    async with _guest() as guest:
        opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        leave = trio.Event()

        async def hold() -> None:
            async with manager as session:
                opened.set_result(session)
                await leave.wait()

        holding = asyncio.ensure_future(guest.call(hold))
        try:
            either: list[asyncio.Future[Any]] = [opened, holding]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                holding.result()  # raises why it could not be opened
            yield AsyncioSession(opened.result(), guest)
        finally:
            if not opened.done():
                holding.cancel()
            leave.set()
            await _uninterrupted(asyncio.ensure_future(asyncio.wait([holding])), lambda: None)
        holding.result()


def open_asyncio_session(
    graph_def: GraphSource,
    devices: str | Path | Cluster = "cpu:1",
    **settings: Any,  # as open_session
) -> AbstractAsyncContextManager[AsyncioSession]:
    """A session for the length of an `async with` block of an asyncio program; `settings` are those of `open_session`.

    A call whose asyncio task is cancelled is cancelled like a step in a cancel scope. Errors come out as they are.
    Raises as `open_session`, and FailedPreconditionError where trio runs in the thread already.
    """
    return _opened(open_session(graph_def, devices, **settings))
