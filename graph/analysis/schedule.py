"""Earliest and latest start times of the nodes of a placed graph, by a `CostModel`, in microseconds.

A node takes its estimated time, and a tensor that changes devices `COPY_US` more. A loop counts as one iteration. Nodes
that the source does not reach start at 0.

    slack = (latest - makespan) - earliest, where the latest times are negative, counted back from 0 at the sink
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from ..columns import CONTROL_SLOT, SINK_ID, SOURCE_ID
from ..graph import Graph
from ..ops.record import NodeClass
from .cost_model import CostModel

COPY_US = 10
_DEGREE = 2  # how many nodes a device runs at a time


class Slack:
    """Earliest and latest start times of one graph."""

    def __init__(self, graph: Graph, model: CostModel | None = None) -> None:
        """Without a model every node takes a microsecond."""
        self.graph = graph
        costs = model or CostModel(is_global=False)
        self._estimate = [0] * graph.num_node_ids
        self._is_merge, self._is_switch = bytearray(graph.num_node_ids), bytearray(graph.num_node_ids)
        for node in graph.nodes():
            self._estimate[node.id] = costs.time_estimate(node)
            self._is_merge[node.id] = node.node_class is NodeClass.MERGE
            self._is_switch[node.id] = node.node_class is NodeClass.SWITCH

    def copy_time(self, edge: int) -> int:
        """Microseconds until the tensor of an edge is at its consumer; 0 for control edges."""
        src, port, dst, _ = self.graph.edge_ends(edge)
        moves = port != CONTROL_SLOT and self.graph.assigned_device(src) != self.graph.assigned_device(dst)
        return COPY_US if moves else 0

    def estimate(self, node: int) -> int:
        """Microseconds a node takes."""
        return self._estimate[node]

    def pending(self) -> Pending:
        """The wait counts at the start of a walk."""
        return Pending(self.graph, self._is_merge)

    def asap(self) -> list[int]:
        """Earliest start times by node id; that of the sink is the makespan.

        The consumers of a Merge start after its first input; its own time is that of its last input, the end of the
        iteration.
        """
        # Not `ready_order`: start times are computed along the way, and a Merge is ready after its first input.
        start = [0] * self.graph.num_node_ids
        pending = self.pending()
        ready = deque([SOURCE_ID])
        while ready:
            node = ready.popleft()
            end = start[node] + self._estimate[node]
            for edge in self.graph.out_edge_ids(node):
                dst = self.graph.edge_ends(edge)[2]
                start[dst] = max(start[dst], end + self.copy_time(edge))
                if pending.count_down(edge):
                    ready.append(dst)
        return start

    def alap(self) -> list[int]:
        """Latest start times by node id, counted back from 0 at the sink; minus that of the source is the makespan."""
        # The same walk along the edges backwards; a Switch is ready when one consumer of its data has been visited.
        start = [0] * self.graph.num_node_ids
        pending = [self._num_waited_for(node) for node in range(self.graph.num_node_ids)]
        ready = deque([SINK_ID])
        while ready:
            node = ready.popleft()
            for edge in self.graph.in_edge_ids(node):
                src = self.graph.edge_ends(edge)[0]
                start[src] = min(start[src], start[node] - self._estimate[src] - self.copy_time(edge))
                pending[src] -= 1
                if pending[src] == 0:
                    ready.append(src)
        return start

    def _num_waited_for(self, node: int) -> int:
        """How many out-edges the backward walk waits for; of the data edges of a Switch only one."""
        edges = self.graph.out_edge_ids(node)
        if not self._is_switch[node]:
            return len(edges)
        return sum(self.graph.edge_ends(edge)[1] == CONTROL_SLOT for edge in edges) + 1

    def slack(self) -> list[int]:
        """By node id, how much later than its earliest time a node can start without delaying the sink."""
        latest, earliest = self.alap(), self.asap()
        makespan = latest[SOURCE_ID]
        return [late - makespan - early for late, early in zip(latest, earliest, strict=True)]


class Pending:
    """How many inputs each node still waits for: all of them, but of a Merge's data inputs only the first."""

    def __init__(self, graph: Graph, is_merge: bytearray) -> None:
        self.graph = graph
        self._is_merge = is_merge
        self._count = [self._initial(node) for node in range(graph.num_node_ids)]

    def _initial(self, node: int) -> int:
        edges = self.graph.in_edge_ids(node)
        if not self._is_merge[node]:
            return len(edges)
        return 2 * sum(self.graph.edge_ends(edge)[3] == CONTROL_SLOT for edge in edges)

    def count_down(self, edge: int) -> bool:
        """Whether the consumer of an edge is ready now; true once per node.

        A Merge counts control inputs by two, and its lowest bit says that a data input has arrived.
        """
        _, _, node, slot = self.graph.edge_ends(edge)
        if not self._is_merge[node]:
            self._count[node] -= 1
            return self._count[node] == 0
        if slot == CONTROL_SLOT:
            self._count[node] -= 2
            return self._count[node] == 1
        was_ready = self._count[node] == 0
        self._count[node] |= 1
        return was_ready


def start_times(graph: Graph, model: CostModel | None = None) -> dict[str, int]:
    """Node name -> earliest start in microseconds: what `PartitionOptions.start_times` takes."""
    earliest = Slack(graph, model).asap()
    return {graph.node_name(node): earliest[node] for node in graph.node_ids() if node > SINK_ID}


def greedy_start_times(graph: Graph, model: CostModel | None = None) -> tuple[list[int], int]:
    """Start times by node id when each device runs at most two nodes at a time, and the end of the last node.

    A free device takes the ready node with the least slack (the lowest id among equals). The times also serve as
    priorities: an earlier start is more urgent. (List scheduling, Graham 1966.)
    """
    return _Greedy(graph, Slack(graph, model)).run()


class _Greedy:
    """One simulated step; `events` are (time, whether a tensor arrives, node), so ends come before arrivals."""

    def __init__(self, graph: Graph, slack: Slack) -> None:
        self.graph = graph
        self.times = slack
        self.urgency = slack.slack()
        self.pending = slack.pending()
        self.start = [0] * graph.num_node_ids
        self.arrival = [0] * graph.num_node_ids  # arrival time of the last tensor that a node waits for
        self.events: list[tuple[int, bool, int]] = []
        self.ready: dict[str, list[tuple[int, int]]] = {}
        self.running: dict[str, int] = {}

    def run(self) -> tuple[list[int], int]:
        heappush(self.events, (0, True, SOURCE_ID))
        now = 0
        while self.events:
            now, is_arrival, node = heappop(self.events)
            device = self.graph.assigned_device(node)
            if is_arrival:
                heappush(self.ready.setdefault(device, []), (self.urgency[node], node))
            else:
                self.running[device] -= 1
                self._arrive(node, now)
            if not self.events or self.events[0][0] > now:
                self._begin(now)
        return self.start, now

    def _arrive(self, node: int, now: int) -> None:
        """Counts down the waits for a node; the last tensor decides when its consumer is ready."""
        for edge in self.graph.out_edge_ids(node):
            dst = self.graph.edge_ends(edge)[2]
            self.arrival[dst] = max(self.arrival[dst], now + self.times.copy_time(edge))
            if self.pending.count_down(edge):
                heappush(self.events, (self.arrival[dst], True, dst))

    def _begin(self, now: int) -> None:
        for device, ready in self.ready.items():
            while ready and self.running.get(device, 0) < _DEGREE:
                _, node = heappop(ready)
                self.running[device] = self.running.get(device, 0) + 1
                self.start[node] = now
                heappush(self.events, (now + self.times.estimate(node), False, node))
