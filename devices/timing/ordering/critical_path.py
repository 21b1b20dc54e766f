"""Priorities by the longest way to the end of the step: what has least slack runs first.

All nodes end by the same instant, that of the step, so the one from which the longest way leads there has least slack.
The way is that of the graph, see `remaining`; in what is called or repeated comes on top what follows it:

    y = f(x); loss(y)       f: mul (3), add (2)      loss (4)
    mul 3 + 2 + 4           add 2 + 4                loss 4
    the same in a loop of 10 iterations, in the third one: mul 3 + 2 + 7 * 5 + 4
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..bodies.scripts import Script
from ..playing.loop_run import LoopRun
from ..playing.model import ModelCall
from .remaining import RemainingTimes

if TYPE_CHECKING:
    from ..hardware.collectives import PlanOf
    from ..playing.activation import Activation
    from .ways import GraphWays


class CriticalPath:
    """The priorities of the rows of one step; a `Priorities`."""

    def __init__(self, script: Script, plan_of: PlanOf) -> None:
        """`plan_of` plans the collectives of the step."""
        self._remaining = RemainingTimes(script, plan_of)
        self._after_ns: dict[Activation, int] = {}

    def of(self, activation: Activation) -> Sequence[float]:
        """By node the longest way from its start to the end of the step, in ns."""
        after_ns = self._after_ns[activation] = self._after(activation)
        ways, gates = self._remaining.of(_script(activation)), activation.body.gates
        if gates is None:
            return [way + after_ns for way in ways.from_start_ns] if after_ns else ways.from_start_ns
        return [_way(ways, activation, n) + after_ns for n in gates.nodes]

    def _after(self, activation: Activation) -> int:
        """The longest way from the end of an activation to that of the step."""
        match activation.run:
            case LoopRun() as loop:
                parent = loop.parent
                around_ns = self._after_ns[parent]
                if _is_last(loop, activation):
                    return around_ns
                ways, further = self._remaining.of(_script(parent)), (loop.count or 0) - 1 - activation.place.number
                return around_ns + ways.exit_ns[loop.frame] + further * ways.turn_ns[loop.frame]
            case ModelCall() as run:
                caller = run.caller
                assert caller.body.gates is not None  # as a node of it calls
                node, ways = caller.body.gates.nodes[run.node], self._remaining.of(_script(caller))
                after_ns = self._after_ns[caller] + _way(ways, caller, node) - ways.times_ns[node]
                return after_ns + self._remaining.further_ns(run.call, run.number, run.count)
        return 0


def _way(ways: GraphWays, activation: Activation, n: int) -> int:
    """The longest way from a node to the end of its activation; from the last turn of a loop, of the one around."""
    run = activation.run
    if isinstance(run, LoopRun) and _is_last(run, activation):
        return ways.leaving_ns[n]
    return ways.from_start_ns[n]


def _is_last(loop: LoopRun, activation: Activation) -> bool:
    """Whether an iteration only finds the end of its loop."""
    return activation.place.number >= (loop.count or 0)


def _script(activation: Activation) -> Script:
    script = activation.place.graph
    assert isinstance(script, Script)  # as it is a simulation
    return script
