"""Priorities by the longest way to the end of the step: what has least slack runs first.

All nodes end by the same instant, that of the step, so the one from which the longest way leads there has least slack.
The way is that of the graph, see `remaining`; in what is called or repeated comes on top what follows it:

    y = f(x); loss(y)       f: mul (3), add (2)      loss (4)
    mul 3 + 2 + 4           add 2 + 4                loss 4
    the same in a loop of 10 iterations, in the third one: mul 3 + 2 + 7 * 5 + 4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....graph.analysis.levels import OUTSIDE
from ..bodies.scripts import Script
from ..playing.loop_run import LoopRun
from ..playing.model import ModelCall
from .remaining import RemainingTimes

if TYPE_CHECKING:
    from ..hardware.collectives import PlanOf
    from ..playing.activation import Activation
    from .ways import GraphWays


class _Rest(NamedTuple):
    """What comes after the nodes of an activation: ways lead to the end of an iteration of `frame`, then `after_ns`."""

    frame: int
    after_ns: int


class CriticalPath:
    """The priorities of the rows of one step; a `Priorities`."""

    def __init__(self, script: Script, plan_of: PlanOf) -> None:
        """`plan_of` plans the collectives of the step."""
        self._remaining = RemainingTimes(script, plan_of)
        self._rests: dict[Activation, _Rest] = {}

    def of(self, activation: Activation) -> Sequence[float]:
        """By node the longest way from its start to the end of the step, in ns."""
        rest = self._rests[activation] = self._rest(activation)
        ways, gates = self._ways(activation), activation.body.gates
        if gates is None:
            return [way + rest.after_ns for way in ways.from_start_ns] if rest.after_ns else ways.from_start_ns
        by_node = ways.from_start_ns if rest.frame == _frame(activation) else ways.leaving_ns[rest.frame]
        return [by_node[n] + rest.after_ns for n in gates.nodes]

    def _rest(self, activation: Activation) -> _Rest:
        match activation.run:
            case LoopRun() as loop:
                around, count, number = self._rests[loop.parent], loop.count or 0, activation.place.number
                if number >= count:  # it only finds the end: its ways lead out of the loop
                    return around
                ways = self._ways(activation)
                further_ns = (count - 1 - number) * ways.turn_ns[loop.frame] + ways.exit_ns[around.frame, loop.frame]
                return _Rest(loop.frame, around.after_ns + further_ns)
            case ModelCall() as run:
                ways, around, gates = self._ways(run.caller), self._rests[run.caller], run.caller.body.gates
                assert gates is not None  # as a node of it calls
                node = gates.nodes[run.node]
                is_own = around.frame == _frame(run.caller)
                way = ways.from_start_ns[node] if is_own else ways.leaving_ns[around.frame][node]
                own_ns = max(way - ways.times_ns[node], 0)
                further_ns = self._remaining.further_ns(run.call, run.number, run.count)
                return _Rest(OUTSIDE, around.after_ns + own_ns + further_ns)
        return _Rest(OUTSIDE, 0)

    def _ways(self, activation: Activation) -> GraphWays:
        script = activation.place.graph
        assert isinstance(script, Script)  # as it is a simulation
        return self._remaining.of(script)


def _frame(activation: Activation) -> int:
    """The frame that the nodes of an activation are in."""
    return activation.run.frame if isinstance(activation.run, LoopRun) else OUTSIDE
