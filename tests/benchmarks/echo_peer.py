"""A peer for tests: it answers, fails, or ends. It needs only the standard library."""

from __future__ import annotations

import os

from benchmarks.peers.serving import serve


def echo(value: object) -> object:
    """The value, after some noise on stdout."""
    print("noise")
    return value


def fail() -> float:
    """An error."""
    return 1 / 0


def leave() -> None:
    """Ends the process without an answer."""
    os._exit(3)


if __name__ == "__main__":
    serve({"echo": echo, "fail": fail, "leave": leave})
