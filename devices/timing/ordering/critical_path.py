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


class CriticalPath:
    """The priorities of the rows of one step; a `Priorities`."""

    def __init__(self, script: Script, plan_of: PlanOf) -> None:
        """`plan_of` plans the collectives of the step."""
        self._remaining = RemainingTimes(script, plan_of)
        self._after_ns: dict[Activation, int] = {}

    def of(self, activation: Activation) -> Sequence[float]:
        """By node the longest way from its start to the end of the step, in ns."""
        after_ns = self._after_ns[activation] = self._after(activation)
        ways, gates = self._remaining.of(_script(activation)).from_start_ns, activation.body.gates
        if gates is not None:
            ways = [ways[n] for n in gates.nodes]
        return [way + after_ns for way in ways] if after_ns else ways

    def _after(self, activation: Activation) -> int:
        """The longest way from the end of an activation to that of the step."""
        match activation.run:
            case LoopRun() as loop:
                parent = loop.parent
                turn_ns = self._remaining.of(_script(parent)).turn_ns[loop.frame]
                further = max((loop.count or 0) - 1 - activation.place.number, 0)
                return self._after_ns[parent] + further * turn_ns
            case ModelCall() as run:
                caller = run.caller
                assert caller.body.gates is not None  # as a node of it calls
                node = caller.body.gates.nodes[run.node]
                after_ns = self._after_ns[caller] + self._remaining.of(_script(caller)).from_end_ns[node]
                return after_ns + self._remaining.further_ns(run.call, run.number, run.count)
        return 0


def _script(activation: Activation) -> Script:
    script = activation.place.graph
    assert isinstance(script, Script)  # as it is a simulation
    return script
