"""The rendezvous: producers send tensors under a key, consumers receive them under it, in either order.

    key.py            `Key`: the name of one transfer, and its text
    rendezvous.py     `Rendezvous`, the protocol, with a drawing of its states
    local.py          `LocalRendezvous`, for one process
    traced.py         `TracedRendezvous`, which also records its transfers; traced steps use it
    worker.py         `WorkerRendezvous`, which checks the sender's incarnation when a worker receives from another task
    incarnations.py   what that check refuses, and its error

    remote.py         `RemoteRendezvous`, of a step that several processes run, as one of them sees it
    exchange.py       `TensorExchange`, the way to one other process for all steps; with an example
    messages.py       what exchanges say to each other
    outbox.py         values that wait until they may be sent, in turns of their steps
    step_tables.py    `StepTables`, the steps that a process knows

Names are imported when they are first used, because trio is not needed to write keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .incarnations import Policy as Policy, refuse_stale as refuse_stale
    from .key import Key as Key
    from .local import LocalRendezvous as LocalRendezvous
    from .rendezvous import (
        Callback as Callback,
        Outcome as Outcome,
        Received as Received,
        Rendezvous as Rendezvous,
        Statistics as Statistics,
        Waiter as Waiter,
    )
    from .traced import Event as Event, TracedRendezvous as TracedRendezvous, Transfer as Transfer
    from .worker import WorkerRendezvous as WorkerRendezvous

load_lazily(__name__)
