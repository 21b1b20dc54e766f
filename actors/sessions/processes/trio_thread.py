"""The thread in which a process of dask runs trio, next to the loop of asyncio in its main thread.

    thread = TrioThread(make)           make(bridge, nursery) is called there, in trio
    bridge, made = await thread.opened()
    await thread.aclose()

It lives from the first session until the worker closes, and is used in the thread of asyncio.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Generic, TypeVar

import trio

from .bridge import LoopBridge

_Made = TypeVar("_Made")

_END_S = 5.0  # how long a kernel that cannot be interrupted may hold up the close of a worker

_logger = logging.getLogger(__name__)


class TrioThread(Generic[_Made]):
    """A run of trio, whose tasks live until `aclose`."""

    def __init__(self, make: Callable[[LoopBridge, trio.Nursery], _Made]) -> None:
        """`make` is called in trio; what it returns is for calls over the bridge."""
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[tuple[LoopBridge, _Made]] = self._loop.create_future()
        self._nursery: trio.Nursery | None = None
        self._ended = asyncio.Event()
        self._thread = Thread(target=self._run, name="partita worker", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException:
            _logger.exception("the thread of Partita ended with an error")
        finally:
            self._tell(self._ended.set)

    def _tell(self, call: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:  # the process ends, and its loop is closed
            pass

    async def _main(self) -> None:
        async with trio.open_nursery() as self._nursery:
            bridge = LoopBridge(self._loop)
            self._tell(partial(self._opened.set_result, (bridge, self._make(bridge, self._nursery))))
            await trio.sleep_forever()

    async def opened(self) -> tuple[LoopBridge, _Made]:
        """The way into the thread, and what was made there."""
        return await asyncio.shield(self._opened)

    async def aclose(self) -> None:
        """Cancels all tasks; returns when the thread has ended, or a kernel does not let it end."""
        bridge, _ = await self.opened()
        assert self._nursery is not None  # it is opened
        bridge.to_trio(self._nursery.cancel_scope.cancel)
        try:
            await asyncio.wait_for(self._ended.wait(), _END_S)
        except TimeoutError:
            _logger.warning("a kernel still runs after %g s; it ends with the process", _END_S)
        else:
            self._thread.join()
