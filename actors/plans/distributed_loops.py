"""The plans of what devices do in one iteration go in, the shares of these devices in the loop come out.

    while i < n: i = i + 1, x = x * x      i on CPU:0, x on CPU:1
    CPU:0 in an iteration                  compares, sends the predicate, adds
    CPU:1 in an iteration                  receives the predicate, multiplies

One device computes the loop's condition. The others receive the predicate from it in every iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...rendezvous.key import destination
from .instructions import values_of
from .plan import DistributedLoop, Plan

if TYPE_CHECKING:
    from .levels import Loop


def distributed_loops(loops: Sequence[Loop], plans: Sequence[Plan], *, from_elsewhere: bool) -> list[DistributedLoop]:
    """The shares of devices in one loop; `plans` are what they do in an iteration.

    With `from_elsewhere` others may have shares too. Otherwise a message that none of the plans receives, which the
    graph's own nodes may send, is not waited for.
    """
    received = {key for plan in plans for key in plan.arrivals.keys}
    shares = []
    for loop, plan in zip(loops, plans, strict=True):
        awaited: dict[str, str] = {}
        for key in plan.sends.keys:
            if from_elsewhere or key in received:
                awaited.setdefault(destination(key), key)
        shares.append(_share(loop, plan, tuple(awaited.values())))
    return shares


def _share(loop: Loop, plan: Plan, awaited: tuple[str, ...]) -> DistributedLoop:
    arguments, counted = loop.entering({argument.index: argument.slot for argument in plan.arguments})
    variables, exits = loop.leaving({result.index: result.slot for result in plan.results})
    return DistributedLoop(
        frame=loop.name,
        plan=plan,
        num_variables=loop.num_variables,
        arguments=arguments,
        counted=counted,
        next_values=values_of(variables),
        exits=tuple(enumerate(exits)),
        parallel=loop.parallel,
        awaited=awaited,
    )
