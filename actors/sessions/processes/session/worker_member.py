"""A worker that hosts devices of a session, as the session sees it, and the error of its loss.

LIVE --dask closes it--> RETIRING --its steps have ended--> its devices move
  `-----------`---- the connection ends --> LOST: `error` says what was there
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import trio

from .....errors import PartitaError, UnavailableError
from .spread import NamedWorker

if TYPE_CHECKING:
    from ..messages.control import VariablesTaken
    from ..peers import ProcessConnection, StepPeer

_LISTED = 4  # devices that an error names; the others are counted


@runtime_checkable
class WorkerPool(Protocol):
    """What a session needs of `client.ConnectedWorkers`."""

    @property
    def live(self) -> Mapping[str, NamedWorker]:
        """The workers that are live now, by process, in order."""

    @property
    def error(self) -> PartitaError | None:
        """Why no worker will ever join; None as long as one may."""

    async def open(self, worker: Any) -> ProcessConnection:  # Any: one of `live`, of whatever class
        """A connection to a worker; UnavailableError if it cannot be reached."""

    async def changed(self) -> None:
        """Waits until `live` or `error` changes."""

    async def aclose(self) -> None:
        """Closes all connections."""


class WorkerMember:
    """One worker. `kinds` are the kinds of state that its devices hold, by device."""

    def __init__(self, worker: NamedWorker, peer: StepPeer) -> None:
        self.worker = worker
        self.process = worker.process_id
        self.peer = peer
        self.kinds: dict[str, tuple[str, ...]] = {}
        self.error: UnavailableError | None = None
        """why it is lost"""
        self.is_retiring = False
        self.num_steps = 0
        self.taken: dict[str, VariablesTaken] = {}
        self.changed = trio.lowlevel.ParkingLot()
        """where tasks wait for its steps to end, for its variables, and for its loss"""

    @property
    def is_lost(self) -> bool:
        """Whether the connection has ended."""
        return self.error is not None

    @property
    def can_host(self) -> bool:
        """Whether devices can come to it."""
        return not (self.is_lost or self.is_retiring)

    @property
    def title(self) -> str:
        """How errors name it."""
        return f"worker {self.worker.name} at {self.worker.address}"

    def lose(self, devices: list[str], cause: PartitaError) -> None:
        """The connection has ended, and these devices are gone."""
        self.error = UnavailableError(
            f"{self.title} was lost ({cause.message}), and with it {_listed(devices)}{self._state_of(devices)}. "
            "They are hosted again: initialise what they held, and run the step again"
        )
        self.error.__cause__ = cause
        self.changed.unpark_all()

    def _state_of(self, devices: list[str]) -> str:
        kinds = sorted({kind for device in devices for kind in self.kinds.get(device, ())})
        return f"; what they held is gone: {', '.join(kinds)}" if kinds else ", which held nothing"


def _listed(devices: list[str]) -> str:
    more = len(devices) - _LISTED
    return ", ".join(devices[:_LISTED]) + (f" and {more} more" if more > 0 else "")
