"""How long actors run: as long as a block of their user's code, whatever ends it.

Flows in: what makes the thing that has actors. Flows out: that thing, for the length of an `async with` block. Always
holds: when the block is over no actor runs any more; what the block raises comes out as it was raised, not in a group.

Ctrl-C. Trio raises KeyboardInterrupt at once where the signal finds the host's own code, and at the next checkpoint of
the main task where it finds protected code. Everything here that must not be cut in half is protected: the ways into
a session and out of it, steps, actors. So the signal waits for the chunk of kernels that is running, a budget of the
event loop at most or one long kernel, and then ends the block like any other exception of its task. Classes stand here
where `contextlib.asynccontextmanager` would be shorter, because its own code between ours is not protected.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from types import TracebackType
from typing import Generic, Protocol, TypeVar

import trio

from ...errors import FailedPreconditionError


class Started(Protocol):
    """What has actors."""

    def start(self, nursery: trio.Nursery) -> None:
        """Starts them."""

    def close(self) -> None:
        """Makes them end; steps under way fail."""


Opened = TypeVar("Opened", bound=Started)


class Block(AbstractAsyncContextManager[Opened], Generic[Opened]):
    """A block in which what `make` returns is started; it is closed when the block ends."""

    def __init__(self, make: Callable[[], Awaitable[Opened]]) -> None:
        self._make = make

    @trio.lowlevel.enable_ki_protection
    async def __aenter__(self) -> Opened:
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
            # Kept from the nursery, which would wrap what the block has raised in a group.
            await self._manager.__aexit__(None, None, None)
        except BaseExceptionGroup as group:
            raise unwrapped(group) from group.__cause__


def unwrapped(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The KeyboardInterrupt that a nursery has put into a group, where nothing else is in it; else the group."""
    _interrupts, others = group.split(KeyboardInterrupt)
    if others is not None:
        return group
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


class Home:
    """The thread in which something with actors lives; calls from any other would never be answered."""

    __slots__ = ("_thread",)

    def __init__(self) -> None:
        self._thread = get_ident()

    def check(self) -> None:
        """Raises FailedPreconditionError in any other thread."""
        if get_ident() != self._thread:
            raise FailedPreconditionError(
                "the session belongs to the event loop of another thread: call it there with trio.from_thread.run, or "
                "use a BlockingSession, which may be called from any thread"
            )
