"""Which steps this process knows: each has a rendezvous from its first mention until it is forgotten.

    mentioned by an ask ----.
                            v           forget, or `lowest` passes it
    begin ------------->  KNOWN  ------------------------------------> OVER: what still comes for it is dropped

Another process may ask for values of a step before this process hears that the step begins, and for values of a step
that is over. So a number has to tell the two apart: all steps below `lowest` are over, and of the others the numbers
of those that are over are kept as ranges. These are few, as the steps between two that go on are over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from ..errors import InternalError, PartitaError
from .remote import KeyRoute, RemoteRendezvous


class StepNumbers:
    """A set of whole numbers, kept as the edges of its ranges: n is in it if an odd number of edges are <= n.

    >>> numbers = StepNumbers(3)      # all below 3
    >>> numbers.add(4); numbers.add(5); numbers.edges
    [-1, 3, 4, 6]
    """

    __slots__ = ("edges",)

    def __init__(self, end: int = 0) -> None:
        """All numbers from 0 to `end`, exclusive."""
        self.edges = [-1, end]

    def __contains__(self, number: int) -> bool:
        return bisect_right(self.edges, number) % 2 == 1

    def add(self, number: int) -> None:
        """Adds a number."""
        if number not in self:
            self._toggle(number)
            self._toggle(number + 1)

    def add_below(self, end: int) -> None:
        """Adds all numbers below `end`."""
        above = self.edges[bisect_right(self.edges, end) :]
        self.edges = [-1, *above] if end in self else [-1, end, *above]

    def _toggle(self, edge: int) -> None:
        place = bisect_left(self.edges, edge)
        if self.edges[place : place + 1] == [edge]:
            del self.edges[place]
        else:
            self.edges.insert(place, edge)


class StepTables:
    """The steps of one session in this process, by number; a session numbers its steps in ascending order."""

    __slots__ = ("_known", "_over")

    def __init__(self) -> None:
        self._known: dict[int, RemoteRendezvous] = {}
        self._over = StepNumbers()

    def begin(
        self, step: int, lowest: int, route: KeyRoute, on_abort: Callable[[PartitaError], object] | None = None
    ) -> RemoteRendezvous:
        """The rendezvous of a step that begins here; steps below `lowest`, at most `step`, are over.

        Others may have asked for values of it already. Raises InternalError if the step is over.
        """
        for over in [number for number in self._known if number < lowest]:
            self.forget(over)
        self._over.add_below(lowest)
        rendezvous = self.find(step)
        if rendezvous is None:
            raise InternalError(f"step {step} is over and cannot begin: number steps in ascending order", step=step)
        rendezvous.begin(route, on_abort)
        return rendezvous

    def find(self, step: int) -> RemoteRendezvous | None:
        """The rendezvous of a step, made at its first mention; None if the step is over."""
        rendezvous = self._known.get(step)
        if rendezvous is None and step not in self._over:
            rendezvous = self._known[step] = RemoteRendezvous(step)
        return rendezvous

    def forget(self, step: int) -> None:
        """The step is over in all processes: closes its rendezvous."""
        self._over.add(step)
        rendezvous = self._known.pop(step, None)
        if rendezvous is not None:
            rendezvous.close()

    def __iter__(self) -> Iterator[RemoteRendezvous]:
        """The rendezvous of the steps that are known now."""
        return iter(list(self._known.values()))

    def __len__(self) -> int:
        return len(self._known)
