"""The two kinds of session, for tests of both: one worker with all CPUs, or two tasks that share them.

Graphs are placed on `strategies.cpu` names. CPU k is a device of its own in both; over two tasks the CPUs with an even
number, such as the client's, are in the first task.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any

import pytest

from partita.actors import Session, open_session
from partita.actors.sessions.cluster_session import open_cluster_session
from partita.devices.catalog import device_spec
from partita.devices.cluster import Cluster
from partita.devices.device import Device
from partita.graph.protos import GraphDef
from tests.runs import cpus
from tests.strategies import cpu


class Deployment(Enum):
    """Which tasks have the CPUs of a session."""

    LOCAL = "local"
    TWO_TASKS = "two tasks"

    def cluster(self, count: int) -> Cluster:
        """`count` CPUs in the order of `device`; at least one for each task."""
        spec = device_spec("generic-cpu")
        tasks = 1 if self is Deployment.LOCAL else 2
        return Cluster([Device(spec, k // tasks, task=k % tasks) for k in range(max(count, tasks))])

    def device(self, number: int) -> str:
        """The full name of CPU `number`."""
        return self.cluster(number + 1).names[number]

    def moved(self, graph: GraphDef, count: int) -> GraphDef:
        """The graph, moved to the CPUs of this deployment."""
        names = {cpu(k): self.device(k) for k in range(count)}
        moved = GraphDef.FromString(graph.SerializeToString())
        for node in moved.node:
            node.device = names.get(node.device, node.device)
        return moved

    def open(self, graph: GraphDef, count: int, **settings: Any) -> AbstractAsyncContextManager[Session]:
        """A session of the graph on `count` CPUs; `settings` are keywords that both kinds of session accept."""
        if self is Deployment.LOCAL:
            return open_session(graph, cpus(count), **settings)
        return open_cluster_session(self.moved(graph, count), self.cluster(count), **settings)


on_every_deployment = pytest.mark.parametrize("deployment", Deployment, ids=lambda d: d.value)
