"""The two halves of an instant of simulated time.

In the first half everything that ends now ends, and releases what waited for it. In the second half streams, launch
threads and links take new work, so that they choose among everything that is ready at that instant. The result does not
depend on the order in which simpy handles simultaneous events.

    t = 10   first half    op a ends and releases c; op b ends and releases d
             second half   the stream, free since a ended, takes c or d by the rule of its queue
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from simpy import Environment, Event
from simpy.events import EventPriority

_NORMAL = EventPriority(1)
_LATE = EventPriority(2)


class Instants:
    """The halves of the instants of a simpy environment, whose times are whole nanoseconds."""

    __slots__ = ("_actions", "_at", "_has_more", "_is_first_half", "env")

    def __init__(self, env: Environment) -> None:
        self.env = env
        # Many things happen at once, as equal devices do equal work: an instant is one event for simpy.
        self._at: dict[int, list[Callable[[Event], None]]] = {}  # what happens in the first half of coming instants
        self._has_more = False  # whether some of what happens in the present first half is still to come
        self._is_first_half = False  # whether it is under way: then it sees to the second one
        self._actions: list[Callable[[], None]] = []  # of the present second half

    def now(self) -> int:
        """Nanoseconds since the start of the clock."""
        return self.env._now  # type: ignore[return-value]  # whole, as all delays are

    def is_last(self) -> bool:
        """Whether nothing else is left to happen in the present instant."""
        return not self._has_more and not self._actions and self.env.peek() > self.env.now

    def after(self, delay_ns: int, action: Callable[[Event], None]) -> None:
        """Calls `action` in the first half of the instant `delay_ns` from now, after those asked for before."""
        at: int = self.env._now + delay_ns  # type: ignore[assignment]  # as in `now`
        actions = self._at.get(at)
        if actions is None:
            self._at[at] = [action]
            self.env.schedule(_Alarm(self.env, self._first_half), _NORMAL, delay_ns)
        else:
            actions.append(action)

    def second_half(self, action: Callable[[], None]) -> None:
        """Calls `action` in the second half of the present instant, after those asked for before."""
        if not self._actions and not self._is_first_half:
            self.env.schedule(_Alarm(self.env, self._second_half), _LATE)
        self._actions.append(action)

    def state(self, named: Callable[[object], Hashable]) -> Hashable:
        """What is still to happen, relative to the present: equal states go on alike. `named` names an action."""
        now = self.now()
        coming = tuple((at - now, tuple(map(named, actions))) for at, actions in sorted(self._at.items()))
        return coming, tuple(map(named, self._actions))

    def _first_half(self, event: Event) -> None:
        now: int = self.env._now  # type: ignore[assignment]  # as in `now`
        actions = self._at.pop(now)
        last = actions.pop()
        is_asked = bool(self._actions)
        self._is_first_half = True
        try:
            if actions:
                self._has_more = True
                for action in actions:
                    action(event)
                self._has_more = False
            last(event)
        finally:
            self._is_first_half = False
        if self._actions and not is_asked:
            if self.env.peek() > now:  # nothing comes in between: no event for simpy
                self._second_half(event)
            else:
                self.env.schedule(_Alarm(self.env, self._second_half), _LATE)

    def _second_half(self, _: Event) -> None:
        actions, self._actions = self._actions, []
        for action in actions:
            action()


class _Alarm(Event):
    """An event that has been triggered already, as `Timeout` is, with one callback.

    What the constructors of simpy check and set one after the other takes longer than all that follows from an event.
    """

    _ok, _value = True, None

    def __init__(self, env: Environment, action: Callable[[Event], None]) -> None:
        self.env = env
        self.callbacks = [action]
