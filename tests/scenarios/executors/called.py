"""Functions that worker processes import by name: they return, raise, wait, or end their process."""

from __future__ import annotations

import os
import signal
import sys
import threading

_never = threading.Event()


def squared(number: int) -> int:
    """The square."""
    return number * number


def fails(text: str) -> None:
    """Raises a ValueError."""
    raise ValueError(text)


def squared_unless(number: int, *deadly: int) -> int:
    """The square; the process is killed for some numbers."""
    if number in deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def leaves(code: int) -> None:
    """Ends the process with an exit code."""
    os._exit(code)


def process_id() -> int:
    """Of the process that it runs in."""
    return os.getpid()


def waits() -> None:
    """Until its process is killed."""
    _never.wait()


def loaded_modules() -> list[str]:
    """The modules of this package that the process has imported, and its start method says how it was made."""
    return [name for name in sys.modules if name.startswith("partita.")]


def first_time(marker: str) -> bool:
    """Kills the process the first time that it is called with the path of a file, and makes the file."""
    if os.path.exists(marker):  # noqa: PTH110 - one system call, in a process that is about to end
        return True
    with open(marker, "w"):  # noqa: PTH123 - likewise
        pass
    os.kill(os.getpid(), signal.SIGKILL)
    return False
