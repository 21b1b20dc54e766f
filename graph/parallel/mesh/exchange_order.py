"""Exchanges of a rank program stand in the order of the program: they hide behind computation only where that is said.

Data dependencies alone let a device compute whatever an exchange does not need. Real programs do so where somebody has
written it. Control edges say which of the two it is. Of d_y, which gives d_x, summed over tp, and d_w:

    program       d_x = d_y w'    d_w = x' d_y    sum of d_x    d_norm
    "tp" exposed  sum waits for d_w too, and what follows waits for the sum      d_x | d_w | sum | d_norm
    "tp" hidden   d_w waits for d_x, so that the sum begins early                d_x | sum beside d_w | d_norm

So an exposed exchange waits for all that is before it in the program on its device, and all that is behind it waits for
its end. A hidden one is begun as early as can be: what it does not need comes behind what gives its input, in the
program and before it. The program is the topological order in which nodes of smaller ids come first. Only nodes that
depend on values of the batch are ordered: what reads shapes or variables alone is free. No order changes a value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush

import numpy as np

from ....collector import collector_paused
from ....errors import NotFoundError
from ...analysis.collective_seats import AXIS
from ...builder.tensor_names import Names, tensor_names
from ...columns import SINK_ID
from ...graph import Graph
from ...ops.properties import NodeProperties
from ...tensor_id import parse_tensor_name
from ..pipelines.seats import is_collective
from .mesh import axis_names

_Edges = list[list[int]]


@collector_paused()
def order_exchanges(graph: Graph, *, batch: Names, ends: Names, hidden: Collection[str], behind: Names = ()) -> None:
    """Adds control edges to a rank program, so that its exchanges hide along the axes `hidden` only.

    What follows from the placeholders `batch` and leads to the tensors `ends` is ordered. Exchanges that lead to the
    tensors `behind` stay as they are, and nothing before these is ordered; the exchanges behind them are all exposed
    that are not hidden. An exchange along several axes is hidden if all of these are.
    """
    program = _Program(graph, _ids(graph, batch), _ids(graph, ends))
    before = program.leading_to(_ids(graph, behind))
    kinds = {node: graph.node_properties(node) for node in program.exchanges if node not in before}
    hides = {node: axis_names(kind.attrs[AXIS].decode()) <= set(hidden) for node, kind in kinds.items()}
    for source, target in sorted(_Ordering(program, hides).edges()):
        graph.add_control_edge(graph.node(source), graph.node(target))


def _ids(graph: Graph, names: Names) -> list[int]:
    """The nodes of tensors, or nodes without one; NotFoundError for a name that the graph does not have."""
    nodes = []
    for name in tensor_names(names):
        node = graph.find_id(parse_tensor_name(name).node)
        if node is None:
            raise NotFoundError(f"the graph has no node {name!r}")
        nodes.append(node)
    return nodes


def _is_exchange(kind: NodeProperties) -> bool:
    return AXIS in kind.attrs and not kind.op_def.record.is_view and is_collective(kind)


class _Program:
    """The nodes of a graph and what they read, in the order of the program."""

    def __init__(self, graph: Graph, batch: Sequence[int], ends: Sequence[int]) -> None:
        live = graph.edge_arrays()
        keep = (live.src > SINK_ID) & (live.dst > SINK_ID)
        src, dst = live.src[keep], live.dst[keep]
        is_data = live.src_output[keep] >= 0
        count = graph.num_node_ids
        self.sources = _lists(dst, src, count)
        """by node those that it waits for"""
        self.data = _lists(dst[is_data], src[is_data], count)
        self._readers = _lists(src, dst, count)
        self.device = graph.requested_device_indices().tolist()
        self.order = self._sorted([node.id for node in graph.op_nodes()])
        reads_shape = graph.flags(lambda kind: kind.op_def.record.reads_shape).tolist()
        self.nodes = self.leading_to(ends) & self._with_values(batch, reads_shape)
        """what is ordered"""
        exchanges = graph.flags(_is_exchange).tolist()
        self.exchanges = [node for node in self.order if exchanges[node] and node in self.nodes]

    def leading_to(self, ends: Iterable[int]) -> set[int]:
        """The nodes that some need, with these."""
        seen = set(ends)
        waiting = list(seen)
        while waiting:
            new = [source for source in self.sources[waiting.pop()] if source not in seen]
            seen.update(new)
            waiting += new
        return seen

    def _sorted(self, nodes: Sequence[int]) -> list[int]:
        """All nodes behind what they wait for, the one of the smallest id first."""
        left = [len(sources) for sources in self.sources]
        ready = [node for node in nodes if not left[node]]
        heapify(ready)
        order = []
        while ready:
            node = heappop(ready)
            order.append(node)
            for reader in self._readers[node]:
                left[reader] -= 1
                if not left[reader]:
                    heappush(ready, reader)
        return order

    def _with_values(self, batch: Sequence[int], reads_shape: Sequence[bool]) -> set[int]:
        """The nodes whose inputs depend on values of some placeholders, and not just on their shapes."""
        found = set(batch)
        for node in self.order:
            if not reads_shape[node] and not found.isdisjoint(self.data[node]):
                found.add(node)
        return found.difference(batch)


def _lists(keys: np.ndarray, values: np.ndarray, count: int) -> _Edges:  # type: ignore[type-arg]  # ids
    """By key the values."""
    lists: _Edges = [[] for _ in range(count)]
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        lists[key].append(value)
    return lists


class _Device:
    """What is known of one device while its nodes are taken in order."""

    def __init__(self) -> None:
        self.gates: list[int] = []
        """what all later nodes wait for"""
        self.behind = set[int]()
        """the nodes behind the gates, or gates themselves"""
        self.open = dict[int, None]()
        """nodes for which no later one has waited, in order"""


class _Ordering:
    """The control edges of one program; `hides` has the exchanges that are ordered, and whether each is hidden."""

    def __init__(self, program: _Program, hides: dict[int, bool]) -> None:
        self.program, self.hides = program, hides
        self._found = set[tuple[int, int]]()

    def edges(self) -> set[tuple[int, int]]:
        """Source and target of each."""
        program, devices = self.program, dict[int, _Device]()
        for node in self._hoisted():
            if node in program.nodes:
                number = program.device[node]
                device = devices.setdefault(number, _Device())
                self._take(device, node, [s for s in program.sources[node] if program.device[s] == number])
        return self._found

    def _take(self, device: _Device, node: int, sources: Sequence[int]) -> None:
        hides = self.hides.get(node)
        if hides is False:
            self._wait(device.open, node, sources)
            device.gates, device.behind, device.open = [node], {node}, {node: None}
            return
        inputs = [source for source in sources if source in device.behind]
        if device.behind.isdisjoint(sources):
            self._wait(device.gates, node, sources)
        for source in sources:
            device.open.pop(source, None)
        device.behind.add(node)
        if hides is None:
            device.open[node] = None
        elif inputs:
            device.gates, device.behind = inputs, {*inputs, node}
            device.open.update(dict.fromkeys(inputs))

    def _wait(self, first: Iterable[int], node: int, sources: Sequence[int]) -> None:
        self._found.update((other, node) for other in first if other not in sources)

    def _hoisted(self) -> list[int]:
        """The order, with what a hidden exchange needs, and the exchange, before other nodes since the last one."""
        order, position = self.program.order, {node: k for k, node in enumerate(self.program.order)}
        if not any(self.hides.values()):
            return order
        new, first, taken = list[int](), 0, set[int]()
        for exchange in self.program.exchanges:
            if self.hides.get(exchange) is not True or exchange in taken:
                continue
            needed = self._needed(exchange, taken, first, position)
            new += sorted(needed, key=position.__getitem__)
            taken |= needed
            last = position[exchange]
            new += [node for node in order[first:last] if node not in taken]
            taken.update(order[first:last])
            first = last
        return [*new, *(node for node in order[first:] if node not in taken)]

    def _needed(self, exchange: int, taken: set[int], first: int, position: dict[int, int]) -> set[int]:
        """What an exchange needs of nodes that are not taken yet, with itself; no other exchange is passed."""
        seen, waiting = {exchange}, [exchange]
        while waiting:
            for source in self.program.sources[waiting.pop()]:
                if source not in seen and source not in taken and position[source] >= first:
                    seen.add(source)
                    waiting.append(source)
        return seen
