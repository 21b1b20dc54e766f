"""What limits a step: the time on its critical path, by cause.

An event of the path counts until the next one starts, so the times add up to the makespan. That is when it ends, except
for a copy that gives a copy engine free before it has arrived.
"""

from __future__ import annotations

from collections import Counter

from ...devices import Cluster
from ...devices.timing import Timeline, TimelineEvent


def limits(timeline: Timeline, cluster: Cluster) -> list[tuple[str, int]]:
    """(what, nanoseconds on the critical path), longest first.

    By the roofline an op takes its overhead and then whichever takes longer, arithmetic or memory traffic; a GPU waits
    for the launch of a kernel only where it has nothing else to do. A transfer is one over the
    link that limited its rate: the slowest of its route, or one that others filled. A collective is what it is.
    """
    times: Counter[str] = Counter()
    path, link = timeline.critical_path(), ""
    ends = [event.start_ns for event in path[1:]] + [timeline.makespan_ns]
    for event, end_ns in zip(path, ends, strict=True):
        took_ns = end_ns - event.start_ns
        if event.kind == "copy":
            link = event.provenance.partition(" (")[2].removesuffix(
                ")"
            )  # the model, of "source -> destination (model)"
            times[f"transfers over {link}"] += took_ns
        elif event.kind == "collective":
            times[event.provenance] += took_ns
        elif event.kind == "recv":
            times[f"latency of {link}"] += took_ns
        elif took_ns:
            is_launch = event.kind == "launch"
            overhead = took_ns if is_launch else cluster.find(event.device).spec.op_overhead_ns * event.runs
            launch, name = min(took_ns, overhead), cluster.short_names.shorten(event.device)
            times[f"launching kernels on {name}"] += launch
            times[f"{_bound(event, cluster)} of {name}"] += took_ns - launch
    return sorted(((what, ns) for what, ns in times.items() if ns), key=lambda item: (-item[1], item[0]))


def _bound(event: TimelineEvent, cluster: Cluster) -> str:
    """Which side of the roofline an op is on."""
    spec = cluster.find(event.device).spec
    memory_ns = -(-event.bytes * 10**9 // spec.achieved_bytes_per_s)
    return "memory bandwidth" if event.duration_ns - spec.op_overhead_ns <= memory_ns else "arithmetic"
