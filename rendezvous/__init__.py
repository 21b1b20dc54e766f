"""Where tensors meet: producers send under a key, consumers receive under it, in either order.

key.py          the name of one transfer, and its wire form
rendezvous.py   the protocol, its states drawn
local.py        the table of one process
traced.py       any rendezvous, with a record of what happened: what a traced step meets at
worker.py       a rendezvous as the worker of one task sees it
incarnations.py what becomes of a tensor that a past life of a device was to send

Names are imported when they are first used: whoever only spells keys needs no trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .incarnations import Policy, refuse_stale
    from .key import Key
    from .local import LocalRendezvous
    from .rendezvous import Callback, Outcome, Received, Rendezvous, Statistics, Waiter
    from .traced import Event, TracedRendezvous, Transfer
    from .worker import WorkerRendezvous

__all__ = [
    "Callback",
    "Event",
    "Key",
    "LocalRendezvous",
    "Outcome",
    "Policy",
    "Received",
    "Rendezvous",
    "Statistics",
    "TracedRendezvous",
    "Transfer",
    "Waiter",
    "WorkerRendezvous",
    "refuse_stale",
]

load_lazily(
    __name__,
    {
        "incarnations": ["Policy", "refuse_stale"],
        "key": ["Key"],
        "local": ["LocalRendezvous"],
        "rendezvous": ["Callback", "Outcome", "Received", "Rendezvous", "Statistics", "Waiter"],
        "traced": ["Event", "TracedRendezvous", "Transfer"],
        "worker": ["WorkerRendezvous"],
    },
)
