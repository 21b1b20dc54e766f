"""The error of a step that was not done in time: it says what the step was waiting for."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import DeadlineExceededError, InvalidArgumentError
from ...rendezvous import Key

_LISTED = 4  # receives that the error names; the rest is counted


def late(message: str, waiting: Sequence[str]) -> DeadlineExceededError:
    """The error, with a note about the keys under which nothing had been sent when the time was up."""
    error = DeadlineExceededError(message)
    if waiting:
        more = f" and {len(waiting) - _LISTED} more" if len(waiting) > _LISTED else ""
        error.add_note(f"still waiting to receive: {'; '.join(map(_receive, waiting[:_LISTED]))}{more}")
    return error


def _receive(text: str) -> str:
    try:
        key = Key.parse(text)
    except InvalidArgumentError:
        return text
    return f"{key.edge_name} from {key.src_device} on {key.dst_device}"
