"""The bytes of a built step's collectives of weights, as a training framework moves them.

    reductions of gradients, float32 in the graph       `gradient_bytes` an element, times the number `gradients`
    gathers of parameters (ZeRO), float32 masters       `gathered_bytes`

With ZeRO the graph spreads shards over dp, or over the dp ranks with the same experts. Frameworks spread them over all
ranks with the same weights at once, those of cp (and for routed experts of tp) first, which are neighbours:

    the graph      reduce-scatter of G over dp;            all-reduce of G / dp over cp;     gather of P over dp
    a framework    reduce-scatter of G over cp, of G / cp over dp;          gather of P / cp over dp, of P over cp

An all-reduce of x takes as long as a reduce-scatter and a gather of x. Marks say so to the clock
(`collective_seats.MOVED`).
"""

from __future__ import annotations

from ....graph import Graph
from ....graph.analysis.collective_seats import AXIS, MOVED
from ....graph.attrs import encode
from ....graph.dtypes import DataType, item_size
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import Exchange
from ...models.split import Split
from ..step import PlannedStep

_PEERS = {"tp", "cp"}
"""axes whose ranks have the same weights beside those of dp"""


def mark_gradients(graph: Graph, step: PlannedStep, split: Split, gradients: float) -> None:
    """Marks the collectives of weights of a graph, which is changed; `gradients` multiplies their times."""
    marked: dict[int, NodeProperties] = {}
    bytes_of = _BytesMoved(step, split)
    for node in graph.op_nodes():
        kind = node.properties
        moved = bytes_of.share(kind) if AXIS in kind.attrs else None
        if moved is None:
            continue
        if id(kind) not in marked:
            marked[id(kind)] = kind.with_attr(MOVED, encode(moved * gradients, "float"))
        graph.set_node_properties(node.id, marked[id(kind)])


class _BytesMoved:
    """The share of its bytes that a collective moves in a framework."""

    def __init__(self, step: PlannedStep, split: Split) -> None:
        self._gathered, self._reduced, self._split = step.gathered_bytes, step.gradient_bytes, split
        self._same_experts = split.dp // split.ep
        """dp ranks with the same routed experts"""

    def share(self, kind: NodeProperties) -> float | None:
        """None for a collective of activations, and for one that has no members."""
        axes = {part.partition(":")[0].rstrip("/") for part in kind.attrs[AXIS].decode().split("+")}
        exchange, dtype = kind.op_def.record.exchange, next(iter(kind.input_types), DataType.FLOAT)
        both = (self._reduced + self._gathered) / 2
        is_sum = exchange is Exchange.ALL_REDUCE
        if is_sum and self._split.zero and "cp" in axes and axes <= _PEERS:  # of shards
            shards = self._same_experts if "tp" in axes else self._split.zero_group or self._split.dp
            return both * shards / item_size(dtype)
        if axes.isdisjoint({"dp", "edp"}):
            return None
        moved = float(self._gathered if exchange is Exchange.ALL_GATHER else self._reduced)
        if self._split.zero and is_sum and axes >= {"edp", *_PEERS} and self._same_experts == 1:
            moved = both  # with one copy along dp the graph has no shards
        elif self._split.zero and not is_sum:
            moved /= self._split.cp * (self._split.tp if "edp" in axes else 1)
        return moved / item_size(dtype)
