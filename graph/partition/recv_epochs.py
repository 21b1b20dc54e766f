"""Receive scheduling: a receive is held back until shortly before its tensor is needed.

Otherwise every receive of a step is posted when the step begins, and the buffers of tensors that are needed late are
occupied all the time. The span of a partition is divided into at most a hundred epochs of equal length. Each epoch gets
a ControlTrigger, which waits for the last node that starts before the epoch. A receive that starts in epoch e waits for
the trigger of epoch e - 6.

    node order  a  b     c  d        e        (by start time, made consistent with the edges)
                      ^        ^
                 synch_1   synch_2 ...    synch_k --control--> every _Recv that starts in epoch k + 6

The new edges close no cycle in a partition: a trigger waits for a node that comes earlier in a topological order than
the receives that wait for the trigger. They close none over several partitions either, if no node of the whole graph
starts before one that it depends on.

TensorFlow also schedules receives inside loops, where a trigger may join nodes of different frames; such a graph does
not run. Without `in_loops` only nodes outside of all frames are waited for and held back.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import InvalidArgumentError, NotFoundError
from ..ops.record import NodeClass, record_of
from ..protos import AttrValue, GraphDef, NodeDef
from ..tensor_id import parse_tensor_name
from .options import START_TIME, PartitionOptions

MAX_EPOCHS = 100
PREFETCH_EPOCHS = 6


@dataclass(order=True, slots=True)
class _ReadyNode:
    """A node that may run. Only `time` is compared: among equal times the order of a binary heap decides."""

    time: int
    node: int = field(compare=False)


class StartTime(NamedTuple):
    """When a node, given by its index in the GraphDef, starts in microseconds."""

    node: int
    time: int


def topological_order(graph: GraphDef) -> list[StartTime]:
    """Starts in topological order; of the nodes that are ready, the one with the earliest start time comes next.

    A node whose start time is not after that of a producer starts one microsecond after the producer. Edges from
    NextIteration to Merge do not count. Nodes of a cycle are left out. Raises NotFoundError for a missing
    `_start_time`, InvalidArgumentError for an input that the graph lacks.
    """
    # Not `ready_order`: the times that decide which node comes next are corrected along the way.
    index_of = {node.name: index for index, node in enumerate(graph.node)}
    time = [start_time(node) for node in graph.node]
    consumers: list[list[int]] = [[] for _ in graph.node]
    num_waited_for = []
    for index, node in enumerate(graph.node):
        sources = [_producer(index_of, node, name) for name in node.input]
        for source in sources:
            consumers[source].append(index)
        back = sum(graph.node[s].op == "NextIteration" for s in sources) if node.op == "Merge" else 0
        num_waited_for.append(len(sources) - back)
    heap: list[_ReadyNode] = []
    for index, node in enumerate(graph.node):
        if not node.input:
            heapq.heappush(heap, _ReadyNode(time[index], index))
    order = []
    while heap:
        ready = heapq.heappop(heap)
        order.append(StartTime(ready.node, ready.time))
        for consumer in consumers[ready.node]:
            time[consumer] = max(time[consumer], ready.time + 1)
            num_waited_for[consumer] -= 1
            if not num_waited_for[consumer]:
                heapq.heappush(heap, _ReadyNode(time[consumer], consumer))
    return order


def add_control_edges(
    partitions: Mapping[str, GraphDef], options: PartitionOptions, *, in_loops: bool = True
) -> Mapping[str, GraphDef]:
    """Adds the triggers and their control edges to every partition graph, in place, and returns `partitions`.

    Without `in_loops` only nodes outside of all frames count. Names are drawn from `options.new_name`, partition after
    partition. Raises as `topological_order`, with nothing changed.
    """
    # All orders before the first change, since computing an order may raise.
    orders = [topological_order(graph) for graph in partitions.values()]
    if not in_loops:
        orders = [_outside_frames(*item) for item in zip(partitions.values(), orders, strict=True)]
    for graph, order in zip(partitions.values(), orders, strict=True):
        if order:
            _schedule(graph, order, options)
    return partitions


def _outside_frames(graph: GraphDef, order: list[StartTime]) -> list[StartTime]:
    """The starts of nodes whose outputs are in the root frame."""
    classes = [record_of(node.op).node_class for node in graph.node]
    if NodeClass.ENTER not in classes:
        return order
    depths: dict[str, int] = {}  # how many frames are around the outputs of a node
    for start in order:
        node, own = graph.node[start.node], classes[start.node]
        around = max((depths.get(parse_tensor_name(name).node, 0) for name in node.input), default=0)
        depths[node.name] = around + (own is NodeClass.ENTER) - (own is NodeClass.EXIT)
    return [start for start in order if not depths[graph.node[start.node].name]]


def _schedule(graph: GraphDef, order: list[StartTime], options: PartitionOptions) -> None:
    epoch_us = order[-1].time // MAX_EPOCHS + 1
    triggers = _add_triggers(graph, order, epoch_us, options)
    for start in order:
        epoch = start.time // epoch_us
        if graph.node[start.node].op == "_Recv" and epoch >= PREFETCH_EPOCHS:
            graph.node[start.node].input.append(f"^{triggers[epoch - PREFETCH_EPOCHS]}")


def _add_triggers(graph: GraphDef, order: list[StartTime], epoch_us: int, options: PartitionOptions) -> list[str]:
    """Names of the triggers by epoch; each waits for the last node in `order` that starts before its epoch."""
    device = graph.node[0].device
    names: list[str] = []
    num_before = 0  # nodes that start before the epoch whose trigger is next
    while len(names) < MAX_EPOCHS and num_before < len(order):
        begin = len(names) * epoch_us
        if begin > order[num_before].time:
            num_before += 1
            continue
        name = options.new_name(f"synch_{len(names)}")
        last_before = [f"^{graph.node[order[num_before - 1].node].name}"] if num_before else []
        trigger = graph.node.add(name=name, op="ControlTrigger", device=device, input=last_before)
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
    """The `_start_time` of a node in microseconds; NotFoundError when it has none."""
    if START_TIME not in node.attr:
        raise NotFoundError(f"No attr named '{START_TIME}' in NodeDef: {{{{node {node.name}}}}}", node=node.name)
    return int(node.attr[START_TIME].i)
