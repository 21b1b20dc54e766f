"""One simulated step in two halves, as benchmarks time them: what is decided before the clock starts, and the clock.

Preparation joins the partitions, infers shapes, prices nodes and says who waits for whom; the engine plays that and
gives events. simpy used the plain way plays the same preparation: `write_plan` writes it down.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

import numpy as np

from partita.devices import as_cluster
from partita.devices.timing.cluster import SimulatedCluster
from partita.devices.timing.cost_source import RooflineSource
from partita.devices.timing.feeds import checked_feeds
from partita.devices.timing.timeline import TimelineEvent
from partita.devices.timing.work import Duty, Work, plan_work
from partita.graph import Graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.collector import collector_paused
from partita.graph.shape_inference.infer import infer_joined


def prepare(partitions: Mapping[str, Graph], cluster: str | Path) -> Work:
    """All that is known of a step before its clock starts."""
    with collector_paused():
        joined = JoinedGraph(partitions)
        return plan_work(infer_joined(joined, checked_feeds({}, joined)), as_cluster(cluster), RooflineSource())


def play(work: Work) -> list[TimelineEvent]:
    """The events of the step."""
    with collector_paused():
        machines = SimulatedCluster(work)
        machines.run()
        return machines.log.events(work)


def write_plan(work: Work, file: Path) -> None:
    """Writes the columns that `peers.simpy_peer` reads; a transfer occupies the first link of its route."""
    resource = [device if duty is Duty.COMPUTE else -1 for device, duty in zip(work.device, work.duty, strict=True)]
    occupied_ns, latency_ns = [cost.time_ns for cost in work.cost], [0] * len(work.cost)
    for n, links in work.links_of.items():
        if links:
            resource[n] = len(work.devices) + links[0]
        occupied_ns[n], latency_ns[n] = work.occupied_ns[n], work.latency_ns[n]
    waits_for: list[list[int]] = [[] for _ in resource]
    for n, consumers in enumerate(work.after):
        for consumer in consumers:
            waits_for[consumer].append(n)
    np.savez(
        file,
        resource=resource,
        occupied_ns=occupied_ns,
        latency_ns=latency_ns,
        starts=[0, *accumulate(map(len, waits_for))],
        sources=[source for sources in waits_for for source in sources],
    )
