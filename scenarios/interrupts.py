"""Whether Ctrl-C was pressed, also where the KeyboardInterrupt is lost.

An extension module that is interrupted while it is imported may turn the KeyboardInterrupt into an ImportError, as
numpy's does, so that the exception alone does not tell what has happened. One that is raised in a destructor or another
callback of the interpreter comes again a moment later: nobody can catch it there. Nothing is noted where SIGINT is
ignored: a shell starts background jobs so, and only SIGTERM ends them.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVarTuple, Unpack

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_S = 0.01
_Arguments = TypeVarTuple("_Arguments")


class Interrupts:
    """Notes each SIGINT before the handler that is there already deals with it."""

    def __init__(self) -> None:
        self._came = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """A block that ends with KeyboardInterrupt if SIGINT came in it, whatever has become of the first one."""
        handler = signal.getsignal(signal.SIGINT)
        if not callable(handler) or threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: FrameType | None) -> object:
            self._came = True
            return handler(number, frame)

        try:
            with _handled(note), self._raised_again():
                yield
        except Exception as error:
            if self._came:
                raise KeyboardInterrupt from error
            raise
        if self._came:
            raise KeyboardInterrupt

    @contextmanager
    def _raised_again(self) -> Iterator[None]:
        """Inside the block a KeyboardInterrupt that Python would print and forget comes again instead."""
        report, timers = sys.unraisablehook, list[threading.Timer]()

        def raise_again(lost: UnraisableHookArgs) -> None:
            if self._came and lost.exc_type is KeyboardInterrupt:
                main = threading.main_thread().ident
                assert main is not None  # it runs
                timers.append(threading.Timer(_AGAIN_S, signal.pthread_kill, [main, signal.SIGINT]))
                timers[-1].start()
            else:
                report(lost)

        sys.unraisablehook = raise_again
        try:
            yield
        finally:
            sys.unraisablehook = report
            for timer in timers:
                timer.cancel()

    async def noted_in_loop(
        self, function: Callable[[Unpack[_Arguments]], Awaitable[None]], *arguments: *_Arguments
    ) -> None:
        """Calls an async function; inside, what the handler of the event loop gets is noted."""
        with self.noted():
            await function(*arguments)

    @contextmanager
    def left_to_loop(self) -> Iterator[None]:
        """Inside the block an event loop can start: it sets its own handler only in place of Python's default."""
        if not callable(signal.getsignal(signal.SIGINT)):
            yield
            return
        with _handled(signal.default_int_handler):
            yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Inside the block SIGINT has another handler."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
