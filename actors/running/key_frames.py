"""The frame in the keys of a running loop or call, which keeps its messages apart from all others.

A plan has the stem of a key. At run time a frame id, which every device computes from the same text, and an iteration
are appended.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any


def frame_id(instance: str) -> int:
    """The 64-bit frame id of a running loop or call, from the text that names it on all devices."""
    return int.from_bytes(blake2b(instance.encode(), digest_size=8).digest(), "big")


def send_in_frame(send: Callable[..., None], frame: str, key: str, value: Any, is_dead: bool = False) -> None:
    """Sends under the key with the suffix `frame`."""
    send(key + frame, value, is_dead)
