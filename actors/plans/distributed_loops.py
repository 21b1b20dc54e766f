"""Loops that several devices run together, each its share: what one device does in an iteration is a plan of its own.

A device that does not have the loop's condition follows the one that has: it receives the predicate every iteration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .instructions import picker
from .plan import DistributedLoop, Plan

if TYPE_CHECKING:
    from .levels import Loop


def distributed_loop(loop: Loop, plan: Plan) -> DistributedLoop:
    """The loop whose iterations `plan` computes."""
    slot_of = {argument.index: argument.slot for argument in plan.arguments}
    entering = loop.num_variables + loop.num_invariants
    arguments = tuple(slot_of[index] for index in range(entering))
    counted = tuple(slot_of[index] for index in range(entering, entering + loop.num_counted))
    results = {result.index: result.slot for result in plan.results}
    variables = [results[index] for index in range(loop.num_variables)]
    exits = tuple((number, results[loop.num_variables + number]) for number in range(loop.num_exits))
    return DistributedLoop(loop.name, plan, loop.num_variables, arguments, counted, picker(variables), exits)
