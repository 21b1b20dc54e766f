"""Loops that several devices run together: what one device does in an iteration is a plan of its own.

One device computes the loop's condition. The others receive the predicate from it in every iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .instructions import picker
from .plan import DistributedLoop, Plan

if TYPE_CHECKING:
    from .levels import Loop


def distributed_loop(loop: Loop, plan: Plan) -> DistributedLoop:
    """A device's share in a loop; `plan` is what it does in an iteration."""
    slot_of = {argument.index: argument.slot for argument in plan.arguments}
    entering = loop.num_variables + loop.num_invariants
    arguments = tuple(slot_of[index] for index in range(entering))
    counted = tuple(slot_of[index] for index in range(entering, entering + loop.num_counted))
    results = {result.index: result.slot for result in plan.results}
    variables = [results[index] for index in range(loop.num_variables)]
    exits = tuple((number, results[loop.num_variables + number]) for number in range(loop.num_exits))
    return DistributedLoop(loop.name, plan, loop.num_variables, arguments, counted, picker(variables), exits)
