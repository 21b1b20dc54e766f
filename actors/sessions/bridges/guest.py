"""trio as a guest of an asyncio loop: a call there is a task of trio, and a block is held open by one.

All users of a loop share one guest, since a thread has one trio at most; the last one that ends, ends it.

    asyncio task --call--> task of trio --result or error--> future

A cancelled asyncio task cancels the scope of its call, and ends when that has ended.

Ctrl-C is the affair of the loop where that has a handler: `asyncio.run` cancels its main task. Where it has none, as in
`run_until_complete`, KeyboardInterrupt would be raised anywhere in trio; there trio hears the signal, the guest ends,
and all calls that wait raise KeyboardInterrupt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import outcome
import trio

from ....errors import CancelledError, FailedPreconditionError

_T = TypeVar("_T")
_Bridged = TypeVar("_Bridged")
_Parameters = ParamSpec("_Parameters")


class Guest:
    """A run of trio in the loop of asyncio, from the first session of the loop to the last."""

    def __init__(self) -> None:
        self.users = 0
        self._loop = asyncio.get_running_loop()
        self._is_open = self._loop.create_future()
        self._has_ended = self._loop.create_future()
        self._nursery: trio.Nursery | None = None
        self._calls: set[asyncio.Future[outcome.Outcome[Any]]] = set()  # Any: each has a result of its own
        self._is_interrupted = False

    async def start(self) -> None:
        """Returns when trio runs; if the caller is cancelled meanwhile, when trio has ended.

        FailedPreconditionError where trio runs in this thread already.
        """
        try:
            trio.lowlevel.start_guest_run(
                self._main,
                run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
                done_callback=self._ended,
                host_uses_signal_set_wakeup_fd=True,
            )
        except RuntimeError as error:
            raise FailedPreconditionError(f"trio cannot be a guest of this event loop: {error}") from None
        try:
            await uninterrupted(self._is_open, lambda: None)
        except asyncio.CancelledError:
            await self.stop()
            raise

    @trio.lowlevel.enable_ki_protection
    async def _main(self) -> None:
        try:
            async with trio.open_nursery() as self._nursery:
                self._is_open.set_result(None)
                await self._until_stopped()
        finally:
            self._nursery = None

    async def _until_stopped(self) -> None:
        try:
            await trio.sleep_forever()
        except KeyboardInterrupt:  # noted before the nursery cancels the calls
            self._is_interrupted = True
            raise

    def _ended(self, result: outcome.Outcome[None]) -> None:
        """Answers the calls that trio has cancelled at its end."""
        if isinstance(result, outcome.Error) and isinstance(result.error, KeyboardInterrupt):
            self._is_interrupted = True  # when nothing ran any more
        for done in self._calls:
            done.set_result(outcome.Error(KeyboardInterrupt() if self._is_interrupted else _loop_ended()))
        self._calls.clear()
        self._has_ended.set_result(None)

    @property
    def has_ended(self) -> bool:
        """Whether trio has."""
        return self._has_ended.done()

    async def stop(self) -> None:
        """Ends trio; returns when it has ended, also if the caller is cancelled meanwhile.

        KeyboardInterrupt if Ctrl-C has ended it.
        """
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()
        await uninterrupted(self._has_ended, lambda: None)
        if self._is_interrupted:
            raise KeyboardInterrupt

    async def call(
        self,
        function: Callable[_Parameters, Awaitable[_T]],
        *arguments: _Parameters.args,
        **keywords: _Parameters.kwargs,
    ) -> _T:
        """Calls an async function in a task of trio; its error comes out bare.

        KeyboardInterrupt if Ctrl-C ends the guest meanwhile; CancelledError if it has ended.
        """
        if self.has_ended:
            raise _loop_ended()
        done: asyncio.Future[outcome.Outcome[_T]] = self._loop.create_future()
        self._calls.add(done)
        scope = trio.CancelScope()

        @trio.lowlevel.enable_ki_protection
        async def task() -> None:
            result: outcome.Outcome[_T] = outcome.Error(_loop_ended())
            with scope:
                try:
                    result = outcome.Value(await function(*arguments, **keywords))
                except trio.Cancelled:
                    raise
                except BaseException as error:  # noqa: BLE001 - raised in the task of asyncio
                    result = outcome.Error(error)
            if not self._is_interrupted:  # which may be why the call failed
                self._calls.discard(done)
                done.set_result(result)

        if self._nursery is not None:  # otherwise trio is about to end
            self._nursery.start_soon(task)
        return (await uninterrupted(done, scope.cancel)).unwrap()

    async def call_sync(
        self, function: Callable[_Parameters, _T], *arguments: _Parameters.args, **keywords: _Parameters.kwargs
    ) -> _T:
        """Calls a function that waits for nothing in a task of trio."""

        async def call() -> _T:
            return function(*arguments, **keywords)

        return await self.call(call)


async def uninterrupted(future: asyncio.Future[_T], cancel: Callable[[], object]) -> _T:
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


def _loop_ended() -> CancelledError:
    return CancelledError("the event loop of the session has ended")


_GUESTS: WeakKeyDictionary[asyncio.AbstractEventLoop, Guest] = WeakKeyDictionary()
_STARTING: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def _guest() -> AsyncIterator[Guest]:
    """The guest of the running loop, which is started for the first user and ended by the last one."""
    loop = asyncio.get_running_loop()
    lock = _STARTING.setdefault(loop, asyncio.Lock())
    async with lock:
        guest = _GUESTS.get(loop)
        if guest is None or guest.has_ended:
            guest = Guest()
            await guest.start()
            _GUESTS[loop] = guest
        guest.users += 1
    try:
        yield guest
    finally:
        guest.users -= 1
        if not guest.users:
            if _GUESTS.get(loop) is guest:
                del _GUESTS[loop]
            await guest.stop()


@asynccontextmanager
async def guest_of_loop(
    manager: AbstractAsyncContextManager[_T], bridged: Callable[[_T, Guest], _Bridged]
) -> AsyncIterator[_Bridged]:
    """Enters and leaves a block of trio in one task of trio, around the block of asyncio.

    The block of asyncio gets what `bridged` makes of what is opened and of the guest.
    """
    async with _guest() as guest:
        opened: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        leave = trio.Event()

        async def hold() -> None:
            async with manager as value:
                opened.set_result(value)
                await leave.wait()

        holding = asyncio.ensure_future(guest.call(hold))
        try:
            either: list[asyncio.Future[Any]] = [opened, holding]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                holding.result()  # raises why it could not be opened
            yield bridged(opened.result(), guest)
        finally:
            if not opened.done():
                holding.cancel()
            leave.set()
            await uninterrupted(asyncio.ensure_future(asyncio.wait([holding])), lambda: None)
        holding.result()
