"""Passes the free nodes of an activation that is all of a step: each ends at once and counts its consumers down.

In a cut graph most nodes are free, so they are passed in one loop, without a call for each: the calls would take longer
than what they do. Nothing else follows from their end, as nobody waits for the end of such an activation.

    a (ended) -> a/send -> a/recv -> b      entries a/send, a/recv at the instant at which a ended; b takes its device
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..hardware.log import KINDS

if TYPE_CHECKING:
    from ..hardware.log import Log
    from .activation import Activation

Ready = list[tuple[int, int]]
"""nodes that are ready, and the entries that released them"""


def pass_alone(
    activation: Activation,
    passes: bytes,
    ready: Ready,
    log: Log,
    now: int,
    start: Callable[[Activation, int, int, Ready], None],
) -> None:
    """Starts ready nodes until none is left; `passes` is as in `Body`, and `start` is called for all other free nodes.

    The latest node that became ready is the next.
    """
    places, waits, base = activation.places, activation.waits, activation.base
    starts, targets = activation.body.consumers
    entries, causes, start_ns, end_ns = log.entries, log.causes, log.start_ns, log.end_ns
    passed = 0
    while ready:
        node, cause = ready.pop()
        place = places[node]
        if place is not None:
            place.take(base + node, cause)
        elif passes[node]:
            entry = len(entries)
            entries.append((base + node) * KINDS)
            causes.append(cause)
            start_ns.append(now)
            end_ns.append(now)
            passed += 1
            for target in targets[starts[node] : starts[node + 1]]:
                waiting = waits[target] = waits[target] - 1
                if not waiting:
                    ready.append((target, entry))
        else:
            start(activation, node, cause, ready)
    activation.left -= passed
