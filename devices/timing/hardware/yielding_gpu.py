"""A GPU whose kernels are slower while a collective is under way on it: that takes a share of its multiprocessors.

With a share of 1/5, a kernel of 100 ns, and a collective that begins after 60 of them and lasts:

    ns       0              60                          110
    kernel   |--- 60 of 100 ---|--- 40 at 4/5 of the speed ---|

Kernels that were launched and have not ended get new times whenever that changes; so an end that was asked for may
come too early, and is passed over. Ends are rounded up to whole nanoseconds.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import ceil

from simpy import Event

from .instants import Instants
from .log import KINDS, Log
from .profile import EndOf
from .streams import Feeder, Gpu, RowQueue

_FULL = Fraction(1)


class YieldingGpu(Gpu):
    """A GPU of which collectives take a share."""

    __slots__ = ("_notified", "_pending", "_slow", "_slowness")

    def __init__(
        self,
        instants: Instants,
        log: Log,
        feeder: Feeder,
        launch_ns: int,
        end_of: EndOf,
        share: float,
        queue: RowQueue | None = None,
    ) -> None:
        """`share` is above 0 and below 1."""
        super().__init__(instants, log, feeder, launch_ns, end_of, queue)
        self._slow = 1 / (1 - Fraction(share).limit_denominator(10**6))
        self._slowness = _FULL
        self._pending: list[int] = []  # entries of kernels that had not ended at the last look, in order
        self._notified: dict[int, int] = {}  # by entry whose end somebody needs: the row

    def share_with_collectives(self, *, shares: bool) -> None:
        """A collective begins on the device, or the last one ends."""
        slowness = self._slow if shares else _FULL
        ratio, self._slowness = slowness / self._slowness, slowness
        now, log = self._instants.now(), self._log
        self._pending = [entry for entry in self._pending if log.end_ns[entry] > now]
        free_at = now
        for entry in self._pending:
            start, end = log.start_ns[entry], log.end_ns[entry]
            if start > now:  # it was launched before, so it starts when the one before it ends
                log.start_ns[entry] = free_at
                log.end_ns[entry] = free_at + ceil((end - start) * ratio)
            else:
                log.end_ns[entry] = now + ceil((end - now) * ratio)
            free_at = log.end_ns[entry]
            if entry in self._notified:
                self._instants.after(free_at - now, partial(self._end, self._notified[entry], entry))
        if self._pending:
            self._free_at = free_at
        for ticket in self._parked:
            self._instants.after(max(self._end_ns(ticket) - now, 0), partial(self._complete, ticket))

    def _enqueue(self, row: int, cause: int) -> None:
        now = self._instants.now()
        start, before = (now, cause) if self._free_at <= now else (self._free_at, self._last_kernel)
        took = self._end_of(start, self._feeder.time_ns(row)) - start
        self._free_at = end = start + ceil(took * self._slowness)
        self._last_kernel = entry = self._log.record(row * KINDS, start, end, before)
        self._entries.append(entry)
        self._pending.append(entry)
        if not self._feeder.launched(row, len(self._entries) - 1, cause):
            self._notified[entry] = row
            self._instants.after(end - now, partial(self._end, row, entry))

    def _end(self, row: int, entry: int, event: Event) -> None:
        if self._log.end_ns[entry] == self._instants.now() and self._notified.pop(entry, None) is not None:
            super()._end(row, entry, event)

    def _complete(self, ticket: int, event: Event) -> None:
        if ticket in self._parked and self._end_ns(ticket) <= self._instants.now():
            super()._complete(ticket, event)
