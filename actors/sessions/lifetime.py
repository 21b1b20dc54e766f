"""The lifetime of a session: its actors run inside an `async with` block, in one nursery, on one thread.

When the block has ended no actor runs. The exception that ended the block is raised as it was, not wrapped in a group.

Ctrl-C: trio raises KeyboardInterrupt at once in unprotected code, and in protected code at the next checkpoint of the
main task. Opening and closing a session, its public methods, steps and actors are protected, because they would leave a
half-changed state behind. So Ctrl-C waits for the running chunk of kernels (at most the budget of a session, or one
long kernel), and then ends the block like any other exception. Every task that the package starts is protected too,
because what wakes a task up may still hold one that an interrupt has ended. The context managers here are classes and
not `contextlib.asynccontextmanager`, because code of contextlib is not protected.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from types import TracebackType
from typing import Generic, Protocol, TypeVar

import trio

from ...errors import CancelledError, FailedPreconditionError


class Openable(Protocol):
    """An object with actors."""

    def start(self, nursery: trio.Nursery) -> None:
        """Starts the actors in `nursery`."""

    def close(self) -> None:
        """Fails running steps and ends the actors."""


Opened = TypeVar("Opened", bound=Openable)


class Block(AbstractAsyncContextManager[Opened], Generic[Opened]):
    """Makes an object with `make`, starts it, gives it to the `async with` block, and closes it after the block."""

    def __init__(self, make: Callable[[], Awaitable[Opened]]) -> None:
        self._make = make

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Opened:
        check_is_trio()
        self._opened = opened = await self._make()
        self._manager = trio.open_nursery()
        opened.start(await self._manager.__aenter__())
        return opened

    @trio.lowlevel.enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()
        try:
            # The nursery does not get the exception of the block, because it would wrap it in a group.
            await self._manager.__aexit__(None, None, None)
        except BaseExceptionGroup as group:
            raise _bare_interrupt(group) from group.__cause__


def check_is_trio() -> None:
    """FailedPreconditionError unless a task of trio makes the call."""
    if not trio.lowlevel.in_trio_task():
        raise FailedPreconditionError(
            "sessions run in trio, and no task of trio makes this call: in asyncio use open_asyncio_session, which "
            "runs trio as a guest of its loop (guest mode), in a notebook or a script BlockingSession"
        )


def session_closed() -> CancelledError:
    """The error of steps that a session ends when it closes, and of every call after that."""
    return CancelledError("Session has been closed.")


def _bare_interrupt(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The KeyboardInterrupt of a group that holds nothing else; otherwise the group itself."""
    _interrupts, others = group.split(KeyboardInterrupt)
    if others is not None:
        return group
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


class OwnerThread:
    """The thread whose event loop runs the actors; a call from another thread would wait forever."""

    __slots__ = ("_thread",)

    def __init__(self) -> None:
        self._thread = get_ident()

    def check(self) -> None:
        """Raises FailedPreconditionError in another thread, and in a task of an event loop that is not trio's."""
        if get_ident() != self._thread:
            raise FailedPreconditionError(
                "the session belongs to the event loop of another thread: call it there with trio.from_thread.run, or "
                "use a BlockingSession, which may be called from any thread"
            )
        check_is_trio()
