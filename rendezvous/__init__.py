"""The rendezvous: producers send tensors under a key, consumers receive them under it, in either order.

    key.py            `Key`: the name of one transfer, and its text
    rendezvous.py     `Rendezvous`, the protocol, with a drawing of its states
    local.py          `LocalRendezvous`, for one process
    traced.py         `TracedRendezvous`, which also records its transfers; traced steps use it
    worker.py         `WorkerRendezvous`, which checks the sender's incarnation when a worker receives from another task
    incarnations.py   what that check refuses, and its error

Names are imported when they are first used, because trio is not needed to write keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .incarnations import Policy as Policy
    from .incarnations import refuse_stale as refuse_stale
    from .key import Key as Key
    from .local import LocalRendezvous as LocalRendezvous
    from .rendezvous import (
        Callback as Callback,
    )
    from .rendezvous import (
        Outcome as Outcome,
    )
    from .rendezvous import (
        Received as Received,
    )
    from .rendezvous import (
        Rendezvous as Rendezvous,
    )
    from .rendezvous import (
        Statistics as Statistics,
    )
    from .rendezvous import (
        Waiter as Waiter,
    )
    from .traced import Event as Event
    from .traced import TracedRendezvous as TracedRendezvous
    from .traced import Transfer as Transfer
    from .worker import WorkerRendezvous as WorkerRendezvous

load_lazily(__name__)
