"""The log of a simulated step: an entry per node that starts or passes and per transfer, turned into `TimelineEvent`s.

Entries are numbered from 0 as they are written. The cause of an entry is the number of an earlier entry, or -1.
"""

from __future__ import annotations

from ...graph.ops.record import RECVS, TRANSFERS
from .timeline import COMPUTE_STREAM, Kind, TimelineEvent
from .work import Duty, Work

_NOT_RUN = -1


class StepLog:
    """Columns by entry and by node. An entry is a node number n, or ~n for the transfer of receive n.

    `start_ns` of a receive is when its transfer starts, `end_ns` when it arrives.
    """

    __slots__ = ("_causes", "_entries", "end_ns", "start_ns")

    def __init__(self, nodes: int) -> None:
        self.start_ns = [_NOT_RUN] * nodes
        self.end_ns = [_NOT_RUN] * nodes
        self._entries: list[int] = []
        self._causes: list[int] = []

    def record(self, node: int, start_ns: int, end_ns: int, cause: int) -> int:
        """Logs a node that runs or passes; returns the number of the entry."""
        self.start_ns[node], self.end_ns[node] = start_ns, end_ns
        self._causes.append(cause)
        self._entries.append(node)
        return len(self._entries) - 1

    def record_copy(self, node: int, start_ns: int, arrives_ns: int, cause: int) -> int:
        """Logs the transfer of a receive; returns the number of the entry."""
        self.start_ns[node], self.end_ns[node] = start_ns, arrives_ns
        self._causes.append(cause)
        self._entries.append(~node)
        return len(self._entries) - 1

    def record_arrival(self, node: int, cause: int) -> int:
        """Logs a receive whose tensor has arrived; returns the number of the entry."""
        self._causes.append(cause)
        self._entries.append(node)
        return len(self._entries) - 1

    def skip(self, node: int, now_ns: int) -> None:
        """A dead node passes: it gets an end, but no start and no entry."""
        self.end_ns[node] = now_ns

    def order(self) -> list[int]:
        """By node the number of its entry, -1 for dead nodes; what follows from another node is logged after it."""
        order = [_NOT_RUN] * len(self.end_ns)
        for number, node in enumerate(self._entries):
            if node >= 0:
                order[node] = number
        return order

    def left_over(self) -> list[int]:
        """Nodes that have not ended."""
        return [node for node, end in enumerate(self.end_ns) if end == _NOT_RUN]

    def events(self, work: Work) -> list[TimelineEvent]:
        """The entries as events."""
        pairs = zip(self._entries, self._causes, strict=True)
        return [self._node(work, n, cause) if n >= 0 else self._transfer(work, ~n, cause) for n, cause in pairs]

    def _node(self, work: Work, n: int, cause: int) -> TimelineEvent:
        graph, end = work.graph, self.end_ns[n]
        device, op, name = work.devices[work.device[n]], graph.op(n), graph.names[n]
        if work.duty[n] is Duty.COMPUTE:
            time_ns, flops, moved, provenance = work.cost[n]
            start = end - time_ns
            return TimelineEvent(
                device, COMPUTE_STREAM, name, op, "compute", start, end, moved, flops, provenance, cause
            )
        kind: Kind = "compute"
        if graph.node_class(n) in TRANSFERS:
            kind = "recv" if graph.node_class(n) in RECVS else "send"
        start = end - work.latency_ns.get(n, 0)
        return TimelineEvent(device, COMPUTE_STREAM, name, op, kind, start, end, 0, 0, "free", cause)

    def _transfer(self, work: Work, n: int, cause: int) -> TimelineEvent:
        graph = work.graph
        device = work.devices[work.device[graph.sender[n]]]
        stream, tensor = work.routes[n].links[0].stream_name, graph.transfers.of(n).tensor_name
        start, end, size = self.start_ns[n], self.end_ns[n] - work.latency_ns[n], work.sizes[n]
        return TimelineEvent(device, stream, tensor, "copy", "copy", start, end, size, 0, "link", cause)
