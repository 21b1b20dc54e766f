"""Every rendezvous there is, by name, for the tests that hold all of them to the protocol."""

from __future__ import annotations

from collections.abc import Callable

from partita.rendezvous import LocalRendezvous, Rendezvous, TracedRendezvous
from partita.rendezvous.remote import RemoteRendezvous
from tests.rendezvous.joined import JoinedRendezvous

IN_ONE_PROCESS: dict[str, Callable[[], Rendezvous]] = {
    "local": LocalRendezvous,
    "traced": lambda: TracedRendezvous(LocalRendezvous()),
    "traced twice": lambda: TracedRendezvous(TracedRendezvous(LocalRendezvous())),
    "remote, all hosted here": lambda: RemoteRendezvous(1),
}
IMPLEMENTATIONS: dict[str, Callable[[], Rendezvous]] = {
    **IN_ONE_PROCESS,
    "over two processes": JoinedRendezvous,
    "over two processes, traced": lambda: JoinedRendezvous(trace=True),
    "over two processes, one value at a time": lambda: JoinedRendezvous(budget_bytes=1),
}
