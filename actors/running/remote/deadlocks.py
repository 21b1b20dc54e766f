"""Finds out, in the session's process, whether nothing of a step over several processes can go on.

    a process: Watch            a call waits there that only nodes of the step can end
    after DELAY_S               Probe 1 to all     each is stuck, messages 7 sent, 7 received
                                Probe 2 to all     the same                                     the step is stuck
    one says it is busy         nothing until it says NowStuck; then again after DELAY_S

A message under way could set something going. So the messages of the step are counted, and two rounds of probes must
find all processes stuck with equal sums: what all have sent in the first is what all have received in the second, so
none was under way in between (Mattern's four counters). Steps that are not in danger are not asked anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from .messages import Probe, ProbeAnswer

DELAY_S = 0.05
"""how long a step waits in vain, at least, before it is looked at: collectives meet much faster"""
Totals = tuple[int, int]


class DeadlockWatch:
    """Looks at one step, once somebody says `watch`."""

    __slots__ = (
        "_after",
        "_answers",
        "_found",
        "_found_at",
        "_is_waiting",
        "_own",
        "_processes",
        "_tell",
        "_totals",
        "_turn",
    )

    def __init__(
        self,
        processes: Collection[str],
        tell: Callable[[str, Probe], object],
        own: Callable[[], Totals],
        after: Callable[[float, Callable[[], None]], object],
        found: Callable[[], object],
    ) -> None:
        """`own` are the messages that the session has sent and received; `after` calls a function later, or never if
        the step has ended; `found` is called when the step is stuck."""
        self._processes = processes
        self._tell = tell
        self._own = own
        self._after = after
        self._found = found
        self._turn = 0
        self._answers: dict[str, Totals] = {}
        self._totals: Totals | None = None
        self._found_at: Totals | None = None
        self._is_waiting = False

    def watch(self) -> None:
        """The step may be stuck soon: looks at it later."""
        if not self._is_waiting:
            self._is_waiting = True
            self._totals = None
            self._after(DELAY_S, self._look)

    def answered(self, process: str, answer: ProbeAnswer) -> None:
        """Takes the answer of a process; one that is busy says `watch` again when it is not."""
        if answer.turn != self._turn:
            return
        if not answer.is_stuck:
            self._turn += 1  # no other answer counts
            return
        self._answers[process] = answer.sent, answer.received
        if len(self._answers) == len(self._processes):
            self._decide()

    def _look(self) -> None:
        self._is_waiting = False
        self._probe()

    def _probe(self) -> None:
        self._turn += 1
        self._answers = {}
        for process in self._processes:
            self._tell(process, Probe(self._turn))

    def _decide(self) -> None:
        """All are stuck: asks again, or knows that the step is."""
        counts = [*self._answers.values(), self._own()]
        totals = sum(sent for sent, _ in counts), sum(received for _, received in counts)
        if totals[0] != totals[1]:
            self.watch()
        elif totals != self._totals:
            self._totals = totals
            self._probe()
        elif totals != self._found_at:
            self._found_at = totals
            self._found()
            self.watch()
