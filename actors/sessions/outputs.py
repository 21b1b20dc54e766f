"""What a worker hands to those who wait for its tensors by key: all of them, or the first error.

Flows in: keys, a rendezvous. Flows out: read-only arrays. Always holds: the one who asked is told once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArgumentError, PartitaError
from ..running.ports import read_only

if TYPE_CHECKING:
    from ...graph.dtypes import Array
    from ...rendezvous import Outcome, Received, Rendezvous

Outputs = dict[str, Any]  # Any: tensors of any type, by key


class Collecting:
    """Receives of several keys that end in one call."""

    def __init__(
        self, rendezvous: Rendezvous, keys: list[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        self._done = done
        self._found: Outputs = {}
        self._missing = len(keys)
        self._is_over = False
        if not keys:
            self._end(self._found)
        for key in keys:
            rendezvous.recv_callback(key, partial(self._arrived, key))

    def _arrived(self, key: str, received: Outcome) -> None:
        if isinstance(received, PartitaError):
            self._end(received)
            return
        try:
            self._found[key] = alive(key, received)
        except PartitaError as error:
            self._end(error)
            return
        self._missing -= 1
        if not self._missing:
            self._end(self._found)

    def _end(self, result: Outputs | PartitaError) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(result)


def alive(key: str, received: Received) -> Array:
    """What was received, as session fetches are: a variable is read now, and nobody can write to the array."""
    if received.is_dead:
        raise InvalidArgumentError(f"The tensor returned for {key} was not valid.")
    return read_only(received.value)
