"""The outputs that a worker receives for its caller, by key: read-only arrays, or the first error."""

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


class PendingOutputs:
    """Receives tensors by key and calls `done` once, with all of them or with the first error."""

    def __init__(
        self, rendezvous: Rendezvous, keys: list[str], done: Callable[[Outputs | PartitaError], object]
    ) -> None:
        self._done = done
        self._outputs: Outputs = {}
        self._num_missing = len(keys)
        self._is_over = False
        if not keys:
            self._end(self._outputs)
        for key in keys:
            rendezvous.recv_callback(key, partial(self._received, key))

    def _received(self, key: str, outcome: Outcome) -> None:
        if isinstance(outcome, PartitaError):
            self._end(outcome)
            return
        try:
            self._outputs[key] = live_array(key, outcome)
        except PartitaError as error:
            self._end(error)
            return
        self._num_missing -= 1
        if not self._num_missing:
            self._end(self._outputs)

    def _end(self, result: Outputs | PartitaError) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(result)


def live_array(key: str, received: Received) -> Array:
    """The received tensor as a read-only array; a variable is read now. InvalidArgumentError for a dead tensor."""
    if received.is_dead:
        raise InvalidArgumentError(f"The tensor returned for {key} was not valid.")
    return read_only(received.value)
