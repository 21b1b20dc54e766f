"""Cutting on two levels: a master's by task, that of each worker by device."""

from __future__ import annotations

import pytest

from partita.devices import Cluster, DeviceSpec
from partita.devices.catalog import device_spec
from partita.devices.device import Device
from partita.devices.pipeline import Pipeline
from partita.errors import NotFoundError
from partita.graph import GraphDef, NodeDef, add_control_edges
from partita.graph.analysis.schedule import start_times
from partita.graph.builder import GraphBuilder
from partita.graph.partition.options import PartitionOptions, name_counter
from partita.graph.tasks import MASTER_SEPARATOR, WORKER_SEPARATOR, partition_by_task, partition_within_task

CPU: DeviceSpec = device_spec("generic-cpu")
WORKERS = [Cluster([Device(CPU, index, "worker", task=task) for index in range(2)]) for task in range(2)]
BOTH = Cluster([device for worker in WORKERS for device in worker])


def chain() -> GraphDef:
    """From device to device, through both tasks and back to the first."""
    b = GraphBuilder()
    x = b.placeholder("x", "float32", (), device=BOTH.names[0])
    for number, name in enumerate([*BOTH.names, BOTH.names[0]]):
        x = b.op("Neg", x, name=f"n{number}", device=name)[0]
    return b.graph_def()


def nodes(graph_def: GraphDef) -> dict[str, NodeDef]:
    """The nodes by name."""
    return {node.name: node for node in graph_def.node}


@pytest.mark.parametrize("scheduled", [False, True])
def test_both_levels_are_those_of_graph_tasks(scheduled: bool) -> None:
    """With start times and triggers, or without; names are counted by each side."""
    master = Pipeline(BOTH, schedule_receives=scheduled, new_name=name_counter(separator=MASTER_SEPARATOR))
    pruned = master.read(chain()).lower().place().prune(["x"], ["n4"], by_rendezvous=True)
    shares = pruned.cut_by_task()
    how = PartitionOptions(
        new_name=name_counter(separator=MASTER_SEPARATOR),
        scheduling_for_recvs=scheduled,
        need_to_record_start_times=scheduled,
        start_times=start_times(pruned.graph) if scheduled else {},
    )
    assert shares == partition_by_task(pruned.graph, how)
    for worker in WORKERS:
        task = worker.client.task_name
        options = PartitionOptions(new_name=name_counter(separator=WORKER_SEPARATOR), scheduling_for_recvs=scheduled)
        expected = partition_within_task(shares[task], task, options)
        if scheduled:
            add_control_edges(expected, options)
        new_name = name_counter(separator=WORKER_SEPARATOR)
        cut = Pipeline(worker, schedule_receives=scheduled, new_name=new_name).cut_share(shares[task])
        assert {name: nodes(graph.to_graph_def()) for name, graph in cut.graphs.items()} == {
            name: nodes(part) for name, part in expected.items()
        }


def test_receives_cannot_be_scheduled_without_start_times() -> None:
    """A worker that schedules receives needs a master that adds start times."""
    shares = Pipeline(BOTH).read(chain()).lower().place().prune(["x"], ["n4"], by_rendezvous=True).cut_by_task()
    with pytest.raises(NotFoundError, match="_start_time"):
        Pipeline(WORKERS[0], schedule_receives=True).cut_share(shares[WORKERS[0].client.task_name])
