"""A GPU whose host thread does not wait for collectives: it launches what is behind one while that is under way.

With a launch of 10 ns, a kernel of 20, a collective of 50, and two kernels of 5 behind it:

    ns           0    10        30                80   85   90
    launches     |--a-|--x-|--b-|--c-|
    stream            |--- a ---|                  b    c
    collective x                |------- 50 ------|

A host thread that waited would launch b from 80 to 90; a collective is a launch too. Here the thread has a clock of its
own, which stands still only where it waits for another device: what a collective or the kernel before it lets go on was
launched right behind what was launched last, in the past if there was time for it.
"""

from __future__ import annotations

from functools import partial

from .log import KINDS, LAUNCH
from .streams import Gpu


class AheadGpu(Gpu):
    """A GPU with such a host thread."""

    _host_ns = 0
    """the clock of the host thread"""

    def _launch_next(self) -> None:
        self._is_asked = False
        now, queue = self._instants.now(), self._queue
        while queue.has_rows and not self._is_launching:
            row, cause = queue.pop(now, self._last_launch)
            last = self._waited_for(cause)
            begin = self._host_ns if last is not None else max(self._host_ns, now)
            self._host_ns = begin + self._launch_ns * (2 if last in self._log.collectives else 1)
            start, end = max(begin, now), max(self._host_ns, now)
            self._last_launch = self._log.record(row * KINDS + LAUNCH, start, end, cause)
            if end > now:
                self._is_launching = True
                self._instants.after(end - now, partial(self._launch_done, row))
            else:
                self._enqueue(row, self._last_launch)

    def _waited_for(self, entry: int) -> int | None:
        """The launch or collective that let a row go on; None for anything else, which the host waits for."""
        log = self._log
        while entry >= 0:
            if entry in log.collectives or log.entries[entry] % KINDS == LAUNCH:
                return entry
            if log.end_ns[entry] > log.start_ns[entry]:
                return None
            entry = log.causes[entry]  # a free row, which passed at once
        return None
