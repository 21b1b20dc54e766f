"""What the keys of a loop or a call under way end with, so that its messages meet no others.

Plans spell the rest of a key; a frame is a number that all devices find on their own, and an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any


def frame_id(instance: str) -> int:
    """The number of a loop or call that is under way, the same on all devices: what its keys have as their frame."""
    return int.from_bytes(blake2b(instance.encode(), digest_size=8).digest(), "big")


def send_in(send: Callable[..., None], frame: str, key: str, value: Any, is_dead: bool = False) -> None:
    """Sends by a key that lacks the frame."""
    send(key + frame, value, is_dead)
