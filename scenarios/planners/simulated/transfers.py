"""Transfers between the stages of a built step as training frameworks make them: a stage waits for its sends.

    forward_s0_m0 ---> to_s1 ---> forward_s1_m0        the next call of stage 0 waits until its rows are there
          |               :
          v               v
    forward_s0_m1 <-------+

The graph alone lets a stage go on at once, as with "pp" in the `overlap` of its split.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....graph import Graph
from ....graph.node import Node


def wait_for_sends(graph: Graph) -> None:
    """Adds the edges to a graph."""
    calls = {node.id for node in graph.op_nodes() if node.op_def.record.calls is not None}
    for sender in [graph.node(node) for node in calls]:
        following = [
            edge.dst
            for edge in sender.out_edges()
            if edge.is_control and edge.dst.id in calls and edge.dst.requested_device == sender.requested_device
        ]
        for arrival in _arrivals(sender):
            for call in following:
                graph.add_control_edge(arrival, call)


def _arrivals(sender: Node) -> Iterator[Node]:
    """The nodes of other devices that read what a call returns."""
    readers = {edge.dst.id: edge.dst for edge in sender.out_edges() if edge.dst.is_op and not edge.is_control}
    for reader in readers.values():
        if reader.requested_device != sender.requested_device:
            yield reader
