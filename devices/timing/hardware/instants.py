"""The two halves of an instant of simulated time.

In the first half everything that ends now ends, and releases what waited for it. In the second half streams, launch
threads and links take new work, so that they choose among everything that is ready at that instant. The result does not
depend on the order in which simpy handles simultaneous events.

    t = 10   first half    op a ends and releases c; op b ends and releases d
             second half   the stream, free since a ended, takes c or d by the rule of its queue
"""

from __future__ import annotations

from collections.abc import Callable

from simpy import Environment, Event, Timeout
from simpy.events import EventPriority

_LATE = EventPriority(2)  # after simpy's NORMAL


class Instants:
    """The halves of the instants of a simpy environment, whose times are whole nanoseconds."""

    __slots__ = ("_actions", "env")

    def __init__(self, env: Environment) -> None:
        self.env = env
        self._actions: list[Callable[[], None]] = []

    def now(self) -> int:
        """Nanoseconds since the start of the clock."""
        return int(self.env.now)

    def is_last(self) -> bool:
        """Whether nothing else is left to happen in the present instant."""
        return self.env.peek() > self.env.now

    def second_half(self, action: Callable[[], None]) -> None:
        """Calls `action` in the second half of the present instant, after those asked for before."""
        if not self._actions:
            event = Event(self.env)
            event._ok, event._value = True, None  # what `Event.succeed` does, which knows no priorities
            _add_callback(event, self._run)
            self.env.schedule(event, _LATE)
        self._actions.append(action)

    def after(self, delay_ns: int, action: Callable[[Event], None]) -> None:
        """Calls `action` in the first half of the instant `delay_ns` from now."""
        _add_callback(Timeout(self.env, delay_ns), action)

    def _run(self, _: Event) -> None:
        actions, self._actions = self._actions, []
        for action in actions:
            action()


def _add_callback(event: Event, action: Callable[[Event], None]) -> None:
    if event.callbacks is not None:  # None only after the event
        event.callbacks.append(action)
