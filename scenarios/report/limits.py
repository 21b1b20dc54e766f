"""What limits a step: the time on its critical path, by cause.

Each event of the path starts when the one before it ends, so the times add up to the makespan.
"""

from __future__ import annotations

from collections import Counter

from ...devices import Cluster
from ...devices.timing import Timeline, TimelineEvent


def limits(timeline: Timeline, cluster: Cluster) -> list[tuple[str, int]]:
    """(what, nanoseconds on the critical path), longest first.

    By the roofline an op takes its overhead and then whichever takes longer, arithmetic or memory traffic; a GPU waits
    for the launch of a kernel only where it has nothing else to do. A transfer occupies its links for its bytes and
    arrives after their latency.
    """
    times: Counter[str] = Counter()
    link = ""
    for event in timeline.critical_path():
        if event.kind == "copy":
            link = event.stream.partition(" to ")[0]
            times[f"transfers over {link}"] += event.duration_ns
        elif event.kind == "recv":
            times[f"latency of {link}"] += event.duration_ns
        elif event.duration_ns:
            is_launch = event.kind == "launch"
            overhead = event.duration_ns if is_launch else cluster.find(event.device).spec.op_overhead_ns
            launch, name = min(event.duration_ns, overhead), cluster.short_names.shorten(event.device)
            times[f"launching kernels on {name}"] += launch
            times[f"{_bound(event, cluster)} of {name}"] += event.duration_ns - launch
    return sorted(((what, ns) for what, ns in times.items() if ns), key=lambda item: (-item[1], item[0]))


def _bound(event: TimelineEvent, cluster: Cluster) -> str:
    """Which side of the roofline an op is on."""
    spec = cluster.find(event.device).spec
    memory_ns = -(-event.bytes * 10**9 // spec.achieved_bytes_per_s)
    return "memory bandwidth" if event.duration_ns - spec.op_overhead_ns <= memory_ns else "arithmetic"
