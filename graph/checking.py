"""Whether every stage of a graph checks what it made, as in all tests; see `invariants.py` for the rules.

The stages import their checkers when they are to check: a program that runs graphs does not load them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_checking = False


@contextmanager
def checking(*, on: bool = True) -> Iterator[None]:
    """Switches the checkers of stages on or off inside the block."""
    global _checking  # noqa: PLW0603 - one switch for the process, as `warnings` has one
    before, _checking = _checking, on
    try:
        yield
    finally:
        _checking = before


def are_checked() -> bool:
    return _checking
