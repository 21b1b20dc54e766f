"""Times of a trace in place of those of the cost source.

    n  op      cost   time             trace        cost after
    0  MatMul  1      53 us, roofline  a: 61 us     2       61 us, measured
    1  MatMul  1      53 us, roofline  -            1

Operations and bytes stay those of the model. A node with several times, one per iteration, takes the median: bodies are
planned once for all iterations. What is free in the model stays free: the time that a real step spends on it is that
of its executor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .spread import Spread, spread_of

if TYPE_CHECKING:
    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Flags, Numbers
    from ..costs.source import OpCost

MeasuredTimes: TypeAlias = "Mapping[str, int | Mapping[str, int]]"
"""nanoseconds by node, or by node and iteration"""


def with_measured(
    graph: JoinedGraph, costs: list[OpCost], cost_of: Numbers, timed: Flags, times: MeasuredTimes, prefix: str = ""
) -> list[str]:
    """Gives the `timed` nodes that have a measured time a cost with it: changes `costs` and `cost_of`.

    `prefix` comes before the names of nodes. Returns a warning about those that have none.
    """
    numbers: dict[tuple[int, Spread], int] = {}
    missing: Counter[str] = Counter()
    for n in np.flatnonzero(timed).tolist():
        time = times.get(prefix + graph.names[n])
        if time is None:
            missing[graph.op(n)] += 1
            continue
        spread = spread_of([time] if isinstance(time, int) else time.values())
        key = int(cost_of[n]), spread
        if key not in numbers:
            numbers[key] = len(costs)
            costs.append(costs[key[0]]._replace(**spread._asdict(), provenance="measured"))
        cost_of[n] = numbers[key]
    listed = ", ".join(f"{count} x {op}" for op, count in sorted(missing.items()))
    return [f"nodes without a time in the trace take that of their model: {listed}"] if listed else []
