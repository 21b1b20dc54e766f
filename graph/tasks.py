"""Two-level partitioning: a master cuts a graph by task, the worker of each task cuts its share by device.

The master adds control loops, for every edge that crosses devices. A worker reads start times and element types of
transfers to other tasks from the Send and Recv nodes that the master made. The master numbers its nodes `prefix_SN`, a
worker `prefix_GN`, each from 0.
"""

from __future__ import annotations

from dataclasses import replace

from .device_name import parse_full_name
from .graph import Graph
from .graphdef.importer import graph_def_to_graph
from .node import Node
from .partition.options import PartitionOptions
from .partition.split import partition
from .protos import GraphDef

MASTER_SEPARATOR, WORKER_SEPARATOR = "_S", "_G"


def task_of(device: str) -> str:
    """The task that a device belongs to: its full name up to the task."""
    parsed = parse_full_name(device)
    return str(replace(parsed, type=None, id=None))


def _task_of_node(node: Node) -> str:
    return task_of(node.assigned_device)


def partition_by_task(graph: Graph, options: PartitionOptions) -> dict[str, GraphDef]:
    """The share of every task, cut as a master does; `options` apply except locations. Raises as `split_graph`."""
    return partition(graph, replace(options, node_to_loc=_task_of_node))


def partition_within_task(share: GraphDef, task: str, options: PartitionOptions) -> dict[str, GraphDef]:
    """The share of `task` cut by device, as its worker does. Raises as `split_graph` and importing a graph do.

    Of `options` the names, the incarnations (of the task's own devices) and the scheduling of receives apply.
    """

    def own_incarnation(device: str) -> int:
        return options.get_incarnation(device) if task_of(device) == task else 0

    how = PartitionOptions(
        new_name=options.new_name,
        get_incarnation=own_incarnation,
        control_flow_added=True,
        scheduling_for_recvs=options.scheduling_for_recvs,
    )
    graph = graph_def_to_graph(share, allow_internal_names=True)
    graph.assign_devices(graph.requested_device_indices())
    return partition(graph, how)
