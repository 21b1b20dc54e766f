"""All actors of a session, whose mailboxes one task serves at a time (see `device_actor`).

turns     CPU:0, CPU:1, CPU:0      a message of CPU:0, the first of CPU:1, another of CPU:0
starts    (CPU:1, step 7)          a part of step 7 that waits to be started, see `Step.part_starts`
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from .device_actor import DeviceActor
    from .pacing import Pacer
    from .step import Step


_STARTED = object()


class ActorGroup:
    """The actors of a session and their turns.

    `turns` has an actor once per message in its mailbox. `starts` are parts of steps that wait to be started: a turn of
    that is taken when there is no mail, and once in each turn of the event loop however much there is. Of many steps
    under way each holds its tensors, so the older ones get on first.

    `server` is the actor whose task serves the mailboxes when it runs next; None while all are parked or wait for
    threads. `is_serving` is True while any task serves them: then, and while there is a server, a posted message needs
    no task to be woken.

    `watched` are steps with calls that only their own nodes can end: they are looked at for a deadlock whenever there
    is no mail, and none is kept back by the `num_slow` actors that wait for a thread.
    """

    __slots__ = ("is_serving", "num_slow", "nursery", "pacer", "server", "starts", "turns", "watched")

    def __init__(self, pacer: Pacer) -> None:
        self.pacer = pacer
        self.turns: deque[DeviceActor] = deque()
        self.starts: deque[tuple[DeviceActor, Step]] = deque()
        self.watched: set[Step] = set()
        self.num_slow = 0
        self.is_serving = False
        self.server: DeviceActor | None = None
        self.nursery: trio.Nursery | None = None

    def start(self, actors: Iterable[DeviceActor], nursery: trio.Nursery) -> None:
        """Starts the tasks of the actors in `nursery`, which also gets the timers of deferred nodes."""
        self.nursery = nursery
        for actor in actors:
            nursery.start_soon(actor.run, name=f"actor of {actor.name}")

    @trio.lowlevel.enable_ki_protection
    def serve_mailboxes(self, *, has_turn: bool = False) -> None:
        """Serves all mailboxes until they are empty or the slice of the event loop is used up.

        With mail left over it wakes the task of an actor, which goes on after other tasks have run: it `has_turn`, and
        serves one message at least. Any other task serves none if the slice is used up already, because of many steps
        that start in one turn of the loop each would serve one. Must be called under `np.errstate(all="ignore")`,
        because kernels divide by zero as TensorFlow's do.
        """
        if self.is_serving:
            return
        self.is_serving = True
        pacer, turns = self.pacer, self.turns
        end, now = pacer.slice.end, pacer.clock()
        try:
            if self.starts and has_turn:
                now = self._start_part()
            if now > end and not has_turn:
                return
            while turns or self.starts:
                if not turns:
                    now = self._start_part()
                elif (actor := turns.popleft()).slow_work is None:
                    now = actor.serve_one(now)
                else:
                    # What comes after the chunk in the thread reads what it writes, so the mail waits: its turns come
                    # back, before all others, when the chunk has run.
                    actor.postponed_turns += 1
                    continue
                if now > end:
                    break
        finally:
            self.is_serving = False
            self.find_server()
            if self.watched:
                self.look_for_deadlocks()

    def look_for_deadlocks(self) -> None:
        """Fails the watched steps in which nothing can go on; see `Step.look_for_deadlock`."""
        if not (self.has_work or self.num_slow or self.is_serving):
            self.watched = {step for step in list(self.watched) if step.look_for_deadlock()}

    def _start_part(self) -> float:
        """Takes a turn of the start of the part that has waited longest; returns the time."""
        _, step = self.starts[0]
        if not step.part_starts or next(step.part_starts[0], _STARTED) is _STARTED:  # nothing is left of a failed step
            self.starts.popleft()
            if step.part_starts:
                step.part_starts.popleft()
        return self.pacer.clock()

    @property
    def has_work(self) -> bool:
        """Whether there is mail, or a part to start."""
        return bool(self.turns or self.starts)

    def find_server(self) -> None:
        """Wakes the task of an actor to serve the mail that is left, unless one is awake. One is enough for all."""
        if self.server is None and self.has_work:
            for actor in chain(self.turns, (actor for actor, _ in self.starts)):
                if actor.wake():
                    self.server = actor
                    break

    def replace_server(self, actor: DeviceActor) -> None:
        """Finds another server if it is this actor, whose task does something else now."""
        if self.server is actor:
            self.server = None
            self.find_server()
