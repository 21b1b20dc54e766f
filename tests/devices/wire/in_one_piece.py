"""Messages as they arrive: what is encoded in pieces is one there."""

from __future__ import annotations

from collections.abc import Sequence

from partita.devices.wire import WireMessage, encode


def encoded(messages: Sequence[WireMessage]) -> bytes:
    """The bytes of a batch."""
    return b"".join(encode(messages))
