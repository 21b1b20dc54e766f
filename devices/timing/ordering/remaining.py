"""The longest way from each node of a step to the end of its graph, in ns: what a delay of the node would delay.

A node counts with its time, a transfer as on idle links, a collective as alone, a call with the longest way through
what it calls. Nothing counts for waiting, be it for a device or a link, nor for launches:

    a (5) -> send -> receive (3) -> b (4)        a 12, receive 7, b 4
    c (6)                                        c 6

The members of one collective end together, so each counts with what follows the others too; if they are in functions
that are called apart, with what follows itself. A conditional counts with the longer branch. Where the count of a loop
is a list, its largest number counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ....graph.ops.record import LOOPS, Calls
from .ways import GraphWays, longest_ways

if TYPE_CHECKING:
    from ....graph.analysis.trip_counts import Count
    from ..bodies.body import Body
    from ..bodies.scripts import Call, Script
    from ..hardware.collectives import PlanOf

GroupDevices = Mapping[str, tuple[int, ...]]
"""by group of collectives the numbers of its devices"""


class RemainingTimes:
    """The ways of the graphs of a step, found once for each script."""

    def __init__(self, script: Script, plan_of: PlanOf) -> None:
        """`plan_of` plans collectives."""
        self._plan_of = plan_of
        self._known: dict[Script, GraphWays] = {}
        scripts = _scripts(script)
        self._devices = _devices_of_groups(each.whole for each in scripts)
        for each in scripts:
            frames = None if each.levels is None else each.levels.frames
            counts = list(map(_largest, each.counts))
            self._known[each] = longest_ways(each.whole.graph, self._times(each), _meetings(each.whole), frames, counts)

    def of(self, script: Script) -> GraphWays:
        """The ways of the graph of a script of the step."""
        return self._known[script]

    def _times(self, script: Script) -> list[int]:
        """The time of each node."""
        body = script.whole
        times = list(body.time_ns)
        for n, route in body.routes.items():
            times[n] = route.transfer_ns(body.copied_bytes[n])
        for members in _meetings(body):
            seat = body.seats[members[0]].seat
            devices = seat.devices or self._devices[seat.group]
            if not seat.devices and len(devices) != seat.size:
                devices = tuple(sorted({int(body.device[n]) for n in members}))
            plan = self._plan_of(seat.kind, devices, max(body.seats[n].size_bytes for n in members))
            for n in members:
                times[n] = plan.cost.time_ns
        for n, call in script.calls.items():
            times[n] = self.further_ns(call, 0, _largest(call.count))
        return times

    def further_ns(self, call: Call, begun: int, count: int) -> int:
        """The ways through what a call runs after it has begun so many bodies, one after the other.

        `count` is the number of iterations. Of branches the longest one runs, and all rows of a map run side by side.
        """
        lengths = [0 if script is None else self._known[script].length_ns for script in call.scripts]
        if call.kind not in LOOPS:
            return 0 if begun else max(lengths, default=0)
        per_turn, total = (2, 2 * count + 1) if call.kind is Calls.WHILE else (1, count)
        further_ns = sum(lengths[begun:total])
        first = max(begun, len(lengths))  # from here on the last bodies are repeated
        for step in range(first, min(first + per_turn, total)):
            further_ns += len(range(step, total, per_turn)) * lengths[-per_turn:][(step - len(lengths)) % per_turn]
        return further_ns


def _meetings(body: Body) -> list[list[int]]:
    """The members in one graph of each collective; one by one where instances are counted as they begin."""
    together: dict[tuple[str, str, int | None, int], list[int]] = {}
    for n, (seat, _) in body.seats.items():
        alone = n if seat.instance is None else -1
        together.setdefault((seat.kind, seat.group, seat.instance, alone), []).append(n)
    return list(together.values())


def _devices_of_groups(bodies: Iterable[Body]) -> GroupDevices:
    """The devices of the members of each group, wherever they are called."""
    devices: dict[str, set[int]] = {}
    for body in bodies:
        for n, (seat, _) in body.seats.items():
            devices.setdefault(seat.group, set()).add(int(body.device[n]))
    return {group: tuple(sorted(numbers)) for group, numbers in devices.items()}


def _scripts(script: Script) -> list[Script]:
    """A script and all that it leads to, once each; what is called comes before what calls it."""
    finished: dict[Script, None] = {}
    waiting = [(script, False)]
    while waiting:
        each, is_done = waiting.pop()
        if is_done:
            finished[each] = None
        elif each not in finished:
            waiting.append((each, True))
            called = [inner for call in each.calls.values() for inner in call.scripts if inner is not None]
            waiting += [(inner, False) for inner in called if inner not in finished]
    return list(finished)


def _largest(count: Count) -> int:
    return count if isinstance(count, int) else max(count, default=0)
