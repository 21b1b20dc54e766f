"""The error of a step that exceeded its time limit; a note names the receives that were still waiting."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import DeadlineExceededError, InvalidArgumentError
from ....rendezvous import Key

_LISTED = 4  # receives that the note names; the others are counted


def deadline_exceeded(message: str, waiting: Sequence[str]) -> DeadlineExceededError:
    """The error with `message`; `waiting` are the keys of receives that had got no tensor."""
    error = DeadlineExceededError(message)
    if waiting:
        more = f" and {len(waiting) - _LISTED} more" if len(waiting) > _LISTED else ""
        error.add_note(f"still waiting to receive: {'; '.join(map(_receive, waiting[:_LISTED]))}{more}")
    return error


def _receive(text: str) -> str:
    try:
        key = Key.parse(text)
    except InvalidArgumentError:  # keys of tests and of other programs may be any text
        return text
    return f"{key.edge_name} from {key.src_device} on {key.dst_device}"
