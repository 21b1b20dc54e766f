"""Where tensors meet: producers send under a key, consumers receive under it, in either order.

key.py          the name of one transfer, and its wire form
rendezvous.py   the protocol, its states drawn
local.py        the table of one process
traced.py       any rendezvous, with a record of what happened

Names are imported when they are first used: whoever only spells keys needs no trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .key import Key
    from .local import LocalRendezvous
    from .rendezvous import Callback, Outcome, Received, Rendezvous, Statistics, Waiter
    from .traced import Event, TracedRendezvous

__all__ = [
    "Callback",
    "Event",
    "Key",
    "LocalRendezvous",
    "Outcome",
    "Received",
    "Rendezvous",
    "Statistics",
    "TracedRendezvous",
    "Waiter",
]

load_lazily(
    __name__,
    {
        "key": ["Key"],
        "local": ["LocalRendezvous"],
        "rendezvous": ["Callback", "Outcome", "Received", "Rendezvous", "Statistics", "Waiter"],
        "traced": ["Event", "TracedRendezvous"],
    },
)
