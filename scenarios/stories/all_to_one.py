"""Story: eight GPUs add up an array each, on the first of them: at once, and in a tree.

Both ways make seven transfers. All to one sends them all to one GPU; a tree sends several at the same time, over
different links. The simulation says which of the two is faster on given links. Run it with
`python -m partita.scenarios.stories.all_to_one`.
"""

from __future__ import annotations

from ...actors import BlockingSession
from ...devices import cut, local_cluster
from ...devices.timing import simulate
from ...devices.units import format_ns
from ..report import columns, step_report, value_line
from ..workloads.reduction import all_to_one, all_to_one_tree
from .catalog import Story

DEVICES = [f"/device:GPU:{k}" for k in range(8)]
LENGTH = 1 << 20  # 4 MiB of float32 per device


def story() -> Story:
    """The lines of the story."""
    graph_def = all_to_one(DEVICES, LENGTH)
    cluster = local_cluster("cpu:1,gpu:8")
    with BlockingSession(graph_def, cluster) as session:
        (total,) = session.run("total")
    yield "eight GPUs, one sum of 4 MiB"
    yield value_line("total", total)

    # Targets run without being fetched, so the total stays on its GPU and no transfer to the host is timed.
    parts = cut(graph_def, cluster, targets=["total"])
    timeline = simulate(parts, cluster)
    yield from step_report(parts, timeline, cluster)

    in_a_tree = simulate(cut(all_to_one_tree(DEVICES, LENGTH), cluster, targets=["total"]), cluster)
    yield "all to one, or a tree of pairs"
    rows = [("", "step time"), *((n, format_ns(t.makespan_ns)) for n, t in (("one", timeline), ("tree", in_a_tree)))]
    yield from columns(rows)
    return timeline


if __name__ == "__main__":
    print("\n".join(story()))
