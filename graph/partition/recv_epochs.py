"""Receive scheduling: a receive waits until its partition has come within a few epochs of the time it is needed.

Flows in: partition graphs whose nodes all carry `_start_time`, in microseconds. Flows out: the same graphs with a
ControlTrigger per epoch and control edges from triggers to receives. Always holds: triggers form no cycle with what is
there, since each follows only nodes that start before its epoch, in an order that is topological.

Without it every receive of a step is posted at once and the buffers of those that are needed late are held all along.
The span of a partition is cut into at most a hundred epochs. A trigger fires when the last node before its epoch is
done; a receive that starts in epoch e is let go by the trigger of epoch e - 6.

    node order  a  b     c  d        e        (by start time, made consistent with the edges)
                      ^        ^
                 synch_1   synch_2 ...    synch_k --control--> every _Recv that starts in epoch k + 6
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import InvalidArgumentError, NotFoundError
from ..protos import AttrValue, GraphDef, NodeDef
from ..tensor_id import parse_tensor_name
from .options import START_TIME, PartitionOptions

MAX_EPOCHS = 100
PREFETCH_EPOCHS = 6


@dataclass(order=True, slots=True)
class _Ready:
    """A node that may run; only its time counts in the heap, so the heap's own order breaks ties."""

    time: int
    node: int = field(compare=False)


def topological_order(graph: GraphDef) -> list[tuple[int, int]]:
    """Nodes as (index, start time in microseconds), earliest first among those whose producers have been popped.

    A node that would start before a producer has ended starts one microsecond after it. An edge from NextIteration to
    Merge does not count; nodes that never become ready, those of a cycle, are left out. Raises NotFoundError for a
    missing `_start_time`, InvalidArgumentError for an input that the graph lacks.
    """
    index_of = {node.name: index for index, node in enumerate(graph.node)}
    time = [start_time(node) for node in graph.node]
    consumers: list[list[int]] = [[] for _ in graph.node]
    needed = []
    for index, node in enumerate(graph.node):
        sources = [_producer(index_of, node, name) for name in node.input]
        for source in sources:
            consumers[source].append(index)
        back = sum(graph.node[s].op == "NextIteration" for s in sources) if node.op == "Merge" else 0
        needed.append(len(sources) - back)
    heap: list[_Ready] = []
    for index, node in enumerate(graph.node):
        if not node.input:
            heapq.heappush(heap, _Ready(time[index], index))
    order = []
    while heap:
        ready = heapq.heappop(heap)
        order.append((ready.node, ready.time))
        for consumer in consumers[ready.node]:
            time[consumer] = max(time[consumer], ready.time + 1)
            needed[consumer] -= 1
            if not needed[consumer]:
                heapq.heappush(heap, _Ready(time[consumer], consumer))
    return order


def add_control_edges(partitions: Mapping[str, GraphDef], options: PartitionOptions) -> Mapping[str, GraphDef]:
    """Adds the triggers and their control edges to every partition graph, in place, and returns `partitions`.

    Names are drawn from `options.new_name`, partition after partition. Raises as `topological_order`, with nothing
    changed.
    """
    orders = [topological_order(graph) for graph in partitions.values()]  # all of them before the first change
    for graph, order in zip(partitions.values(), orders, strict=True):
        if order:
            _schedule(graph, order, options)
    return partitions


def _schedule(graph: GraphDef, order: list[tuple[int, int]], options: PartitionOptions) -> None:
    resolution = order[-1][1] // MAX_EPOCHS + 1
    receives = [(graph.node[index], time) for index, time in order if graph.node[index].op == "_Recv"]
    triggers = _add_triggers(graph, order, resolution, options)
    for receive, time in receives:
        epoch = time // resolution
        if epoch >= PREFETCH_EPOCHS:
            receive.input.append(f"^{triggers[epoch - PREFETCH_EPOCHS]}")


def _add_triggers(
    graph: GraphDef, order: list[tuple[int, int]], resolution: int, options: PartitionOptions
) -> list[str]:
    """Names of the triggers, one an epoch; each follows the last node in `order` that starts before its epoch."""
    device = graph.node[0].device
    names: list[str] = []
    before = 0
    while len(names) < MAX_EPOCHS and before < len(order):
        begin = len(names) * resolution
        if begin > order[before][1]:
            before += 1
            continue
        name = options.new_name(f"synch_{len(names)}")
        after = [f"^{graph.node[order[before - 1][0]].name}"] if before else []
        trigger = graph.node.add(name=name, op="ControlTrigger", device=device, input=after)
        trigger.attr[START_TIME].CopyFrom(AttrValue(i=begin))
        names.append(name)
    return names


def _producer(index_of: Mapping[str, int], node: NodeDef, name: str) -> int:
    producer = parse_tensor_name(name).node
    if producer not in index_of:
        message = f"Node '{node.name}': Unknown input node '{name}'"
        raise InvalidArgumentError(message, node=node.name, op=node.op, device=node.device)
    return index_of[producer]


def start_time(node: NodeDef) -> int:
    """When a node starts, in microseconds; NotFoundError if it does not say."""
    if START_TIME not in node.attr:
        raise NotFoundError(f"No attr named '{START_TIME}' in NodeDef: {{{{node {node.name}}}}}", node=node.name)
    return int(node.attr[START_TIME].i)
