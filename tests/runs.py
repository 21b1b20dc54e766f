"""Short ways to run a graph in tests: a request in its own session, steps in an open one, watched sessions, garbage.

Soft placement is off, so a node runs on the device that a test names.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from partita.actors.sessions.local_session import open_session
from partita.actors.sessions.session import Session
from partita.collector import collector_paused
from partita.graph.dtypes import Array
from partita.graph.protos import ConfigProto, GraphDef
from partita.rendezvous import LocalRendezvous
from tests.strategies import GraphCase

HARD_PLACEMENT = ConfigProto(allow_soft_placement=False)


def cpus(count: int) -> str:
    """The devices of a session with so many CPUs."""
    return f"cpu:{count}"


async def run_one(
    session: Session, feeds: Mapping[str, Array], fetches: Sequence[str], targets: Sequence[str]
) -> list[Array]:
    """Runs one step."""
    return await session.run(list(fetches), dict(feeds), list(targets))


async def values(graph_def: GraphDef, case: GraphCase, devices: int = 4) -> list[Array]:
    """What the request of a case fetches from a graph, in a session of its own."""
    async with open_session(graph_def, cpus(devices), config=HARD_PLACEMENT) as session:
        return await run_one(session, case.feeds, case.fetches, case.targets)


async def fetched(graph_def: GraphDef, fetches: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
    """What one step fetches from a graph on one CPU."""
    async with open_session(graph_def, cpus(1)) as session:
        return await run_one(session, feeds, fetches, [])


def assert_same_values(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    """Equal in number, type, shape and every bit."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), f"{a} is not {b}"


class Watch:
    """Makes the rendezvous of a session, and remembers them and, weakly, every array sent through them."""

    def __init__(self) -> None:
        self.meetings: list[LocalRendezvous] = []
        self.most_queued = 0  # messages at one rendezvous that had no receiver yet
        self.tensors: list[weakref.ref[Any]] = []  # Any: any value that has weak references

    def __call__(self) -> LocalRendezvous:
        """A new rendezvous; called in place of the class."""
        meeting = _Watched(self)
        self.meetings.append(meeting)
        return meeting

    def left_behind(self) -> dict[str, int]:
        """Waiters and queued messages that are still in the rendezvous."""
        all_statistics = [meeting.statistics() for meeting in self.meetings]
        return {
            "waiters": sum(statistics.waiting for statistics in all_statistics),
            "queued": sum(statistics.queued for statistics in all_statistics),
        }

    def living_tensors(self) -> int:
        """How many of the arrays sent are still alive, apart from those that the rendezvous hold.

        An aborted rendezvous holds its error, whose traceback holds the inputs of the failed kernel.
        """
        self.meetings.clear()
        gc.collect()
        return len({id(array) for array in (reference() for reference in self.tensors) if array is not None})


class _Watched(LocalRendezvous):
    """A rendezvous that tells its watch about arrays."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def send(self, key: Hashable, value: Any, is_dead: bool = False) -> None:  # Any: see the rendezvous
        tensor = getattr(value, "value", value)  # on a virtual clock the entry of the send goes with the tensor
        if isinstance(tensor, np.ndarray):
            self._watch.tensors.append(weakref.ref(tensor))
        super().send(key, value, is_dead)
        self._watch.most_queued = max(self._watch.most_queued, self.statistics().queued)


@contextmanager
def counted_garbage() -> Iterator[list[int]]:
    """How many objects a block leaves in reference cycles, as the only item of a list, after the block.

    Modules that are loaded leave some, so they are loaded before.
    """
    while gc.collect():  # again: the end of what other tests have left may leave something, too
        pass
    left: list[int] = []
    with collector_paused():
        yield left
        left.append(gc.collect())
