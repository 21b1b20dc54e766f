"""One simulated step in two halves, as benchmarks time them: what is decided before the clock starts, and the clock.

Preparation joins the partitions, infers shapes, prices nodes and says who waits for whom; the engine plays that and
gives events. simpy used the plain way plays the same preparation: `write_plan` writes it down.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

import numpy as np

from partita.collector import collector_paused
from partita.devices import Cluster, Link, as_cluster
from partita.devices.timing.bodies.body import Body
from partita.devices.timing.bodies.planning import Planner
from partita.devices.timing.bodies.scripts import Script
from partita.devices.timing.costs.roofline import RooflineSource
from partita.devices.timing.events import Events
from partita.devices.timing.feeds import checked_feeds
from partita.devices.timing.hardware.engine import Duty
from partita.devices.timing.playing.model import ModelOracle
from partita.devices.timing.playing.player import Player
from partita.devices.timing.playing.recording import events_of
from partita.devices.timing.playing.shared_hardware import SharedHardware
from partita.graph import Graph
from partita.graph.analysis.joined import JoinedGraph
from partita.graph.shape_inference.infer import infer_joined


def prepare(partitions: Mapping[str, Graph], cluster: str | Path) -> tuple[Body, Cluster]:
    """All that is known of a step before its clock starts."""
    with collector_paused():
        joined, hardware = JoinedGraph(partitions), as_cluster(cluster)
        body = Planner(hardware, RooflineSource()).plan(infer_joined(joined, checked_feeds({}, joined)))
        return body, hardware


def play(prepared: tuple[Body, Cluster]) -> Events:
    """The events of the step."""
    body, cluster = prepared
    with collector_paused():
        player = Player(SharedHardware(cluster), ModelOracle(), folds=True)
        player.play(Script(None, body))
        return events_of(player, cluster.names)


def write_plan(prepared: tuple[Body, Cluster], file: Path) -> None:
    """Writes the columns that `peers.simpy_peer` reads; a transfer occupies the first link of its route."""
    body, cluster = prepared
    resource = np.where(body.duty == Duty.COMPUTE, body.device, -1).tolist()
    occupied_ns, latency_ns = list(body.time_ns), [0] * len(body)
    links: dict[Link, int] = {}
    for n, route in body.routes.items():
        resource[n] = len(cluster) + links.setdefault(route.links[0], len(links))
        occupied_ns[n], latency_ns[n] = route.occupied_ns(body.copied_bytes[n]), route.latency_ns
    waits_for: list[list[int]] = [[] for _ in resource]
    starts, targets = body.consumers
    for n in range(len(body)):
        for consumer in targets[starts[n] : starts[n + 1]]:
            waits_for[consumer].append(n)
    np.savez(
        file,
        resource=resource,
        occupied_ns=occupied_ns,
        latency_ns=latency_ns,
        starts=[0, *accumulate(map(len, waits_for))],
        sources=[source for sources in waits_for for source in sources],
    )
