"""The longest way from each node to the end of its graph, in ns: what a delay of the node would delay.

A node counts with its time, a transfer as on idle links, a collective as alone, a call with the longest way through
what it calls. Nothing counts for waiting, be it for a device or a link, nor for launches:

    a (5) -> send -> receive (3) -> b (4)        a 12, receive 7, b 4
    c (6)                                        c 6

The members of one collective end together, so each counts with what follows the others too; if they are in functions
that are called apart, with what follows itself. An Enter counts with all iterations of its loop but one, a conditional
with the longer branch. Where a count is a list, its largest number counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.arrays import grouped, inverse, owners, topological_order
from ....graph.ops.record import Calls

if TYPE_CHECKING:
    from ....graph.analysis.levels import Frame
    from ....graph.analysis.trip_counts import Count
    from ..bodies.body import Body
    from ..bodies.scripts import Call, Script
    from ..hardware.collectives import PlanOf

GroupDevices = Mapping[str, tuple[int, ...]]
"""by group of collectives the numbers of its devices"""


class Remaining(NamedTuple):
    """By joint number of a graph the longest way from the start, and from the end, of a node to the end of the graph.

    `length_ns` is the longest way through the graph, `turn_ns` by frame through one iteration.
    """

    from_start_ns: list[int]
    from_end_ns: list[int]
    length_ns: int
    turn_ns: Mapping[int, int]


class RemainingTimes:
    """What remains after the nodes of the graphs of a step, found once for each script."""

    def __init__(self, script: Script, plan_of: PlanOf) -> None:
        """`plan_of` plans collectives."""
        self._plan_of = plan_of
        self._known: dict[Script, Remaining] = {}
        scripts = _scripts(script)
        self._devices = _devices_of_groups(each.whole for each in scripts)
        for each in scripts:
            self._known[each] = self._found(each)

    def of(self, script: Script) -> Remaining:
        """What remains after the nodes of a script of the step."""
        return self._known[script]

    def _found(self, script: Script) -> Remaining:
        times, ways = self._times(script), _Ways(script.whole)
        turn_ns = {}
        if script.levels is not None:
            frames = script.levels.frames.all
            for number in sorted(range(1, len(frames)), key=lambda number: -frames[number].depth):
                turn_ns[number] = ways.longest_inside(_nodes_inside(frames, number), times)
                more_ns = (max(_largest(script.counts[number]), 1) - 1) * turn_ns[number]
                for enter in frames[number].enters:
                    times[enter] += more_ns
        from_start, from_end = ways.longest(times)
        return Remaining(from_start, from_end, max(from_start, default=0), turn_ns)

    def _times(self, script: Script) -> list[int]:
        """The time of each node."""
        body = script.whole
        times = list(body.time_ns)
        for n, route in body.routes.items():
            times[n] = route.transfer_ns(body.copied_bytes[n])
        for members in _meetings(body):
            seat = body.seats[members[0]].seat
            devices = self._devices[seat.group]
            if len(devices) != seat.size:
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
        if call.kind is Calls.FOR:
            return (count - begun) * lengths[-1] if lengths else 0
        if call.kind is not Calls.WHILE:
            return 0 if begun else max(lengths, default=0)
        condition, body = lengths[-2:] if len(lengths) > 1 else (*lengths, 0)
        return (count + 1 - (begun + 1) // 2) * condition + (count - begun // 2) * body


class _Ways:
    """The ways through one graph, on which the members of a collective are one place."""

    def __init__(self, body: Body) -> None:
        self._place, self._starts, self._targets, self._order = _contracted(body)

    def longest(self, times: Sequence[int]) -> tuple[list[int], list[int]]:
        """By node the longest way from its start, and from its end."""
        place, starts, targets = self._place, self._starts, self._targets
        ways, after = [0] * len(times), [0] * len(times)
        for n in reversed(self._order):
            longest = 0
            for target in targets[starts[n] : starts[n + 1]]:
                if ways[target] > longest:
                    longest = ways[target]
            after[n] = longest
            ways[n] = longest + times[n]
        return [ways[n] for n in place], [after[n] for n in place]

    def longest_inside(self, nodes: Iterable[int], times: Sequence[int]) -> int:
        """The longest way through some nodes alone."""
        starts, targets, ways = self._starts, self._targets, dict[int, int]()
        for n in sorted({self._place[n] for n in nodes}, key=self._rank.__getitem__, reverse=True):
            after = max([ways.get(target, 0) for target in targets[starts[n] : starts[n + 1]]], default=0)
            ways[n] = after + times[n]
        return max(ways.values(), default=0)

    @cached_property
    def _rank(self) -> list[int]:
        """By node its number in the order."""
        rank: list[int] = inverse(np.array(self._order)).tolist()
        return rank


def _contracted(body: Body) -> tuple[list[int], list[int], list[int], list[int]]:
    """By node the first member of its collective, or itself; who follows these, by columns; a topological order.

    Where collectives wait for each other, which cannot run, no members are joined.
    """
    graph = body.graph
    starts, targets = graph.consumers()
    place = np.arange(len(graph))
    for members in _meetings(body):
        place[members] = members[0]
    src, dst = place[owners(np.diff(starts))], place[targets]
    src, dst = src[src != dst], dst[src != dst]
    starts, edges = grouped(src, len(graph))
    targets = dst[edges]
    order = topological_order(starts, targets)
    if len(order) < len(graph):
        starts, targets = graph.consumers()
        place, order = np.arange(len(graph)), graph.order().tolist()
    return place.tolist(), starts.tolist(), targets.tolist(), order


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


def _nodes_inside(frames: Sequence[Frame], number: int) -> list[int]:
    """The nodes of a frame and of those in it."""
    inside, nodes = {number}, list(frames[number].nodes)
    for inner in range(number + 1, len(frames)):  # a frame has a number before those in it
        if frames[inner].parent in inside:
            inside.add(inner)
            nodes += frames[inner].nodes
    return nodes
