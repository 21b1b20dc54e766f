"""What kernels keep for the steps that graph managers run at one rendezvous: they are shares of one step of a master.

    worker 0: execute(h0, rendezvous)  --.
                                          >-- one `StepState`, from the first share that begins to the last that ends
    worker 1: execute(h1, rendezvous)  --'

So the members of a collective meet though their workers know nothing of each other. A session's steps share their
states themselves (`worker_steps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...devices.kernels.step_state import StepState
from ...rendezvous import WorkerRendezvous

if TYPE_CHECKING:
    from ...rendezvous import Rendezvous


class _Shared:
    """A state, and how many shares of its step run."""

    __slots__ = ("num_shares", "state")

    def __init__(self) -> None:
        self.state = StepState()
        self.num_shares = 0


_by_rendezvous: dict[Rendezvous, _Shared] = {}


@contextmanager
def state_at(rendezvous: Rendezvous) -> Iterator[StepState]:
    """The state of the step that meets at a rendezvous, for the length of one worker's share."""
    place = rendezvous.shared if isinstance(rendezvous, WorkerRendezvous) else rendezvous
    shared = _by_rendezvous.setdefault(place, _Shared())
    shared.num_shares += 1
    try:
        yield shared.state
    finally:
        shared.num_shares -= 1
        if not shared.num_shares:
            del _by_rendezvous[place]
            shared.state.end()
