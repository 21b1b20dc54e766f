"""What a process of ours does with a step that it has made: cuts it, simulates it as often as asked, and tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from partita.devices.timing import Timeline
from partita.graph import Graph

from .memory import peak_bytes
from .sampling import Sample, now

Partitions = Mapping[str, Graph]


def tell(
    cut: Callable[[], Partitions], simulate: Callable[[Partitions], Timeline], calls: int, before: Sequence[Sample] = ()
) -> None:
    """Prints nodes, seconds (wall, CPU) of `before`, the cut and each simulation, and the peak memory, as JSON."""
    start = now()
    partitions = cut()
    times = [*before, now() - start]
    for _ in range(calls):
        start = now()
        simulate(partitions)
        times.append(now() - start)
    count = sum(sum(1 for _ in part.op_nodes()) for part in partitions.values())
    seconds = [(time.wall_s, time.cpu_s) for time in times]
    print(json.dumps({"nodes": count, "seconds": seconds, "peak": peak_bytes()}))
