"""Exchanges of a rank program stand in the order of the program: they hide behind computation only where that is said.

Data dependencies alone let a device compute whatever an exchange does not need. Real programs do so where somebody has
written it. Control edges say which of the two it is. Of d_y, which gives d_x, summed over tp, and d_w:

    program       d_x = d_y w'    d_w = x' d_y    sum of d_x    d_norm
    "tp" exposed  sum waits for d_w too, and what follows waits for the sum      d_x | d_w | sum | d_norm
    "tp" hidden   d_w waits for d_x, so that the sum begins early                d_x | sum beside d_w | d_norm

So an exposed exchange waits for all that is before it in the program on its device, and all that is behind it waits for
its end. A hidden one is begun as early as can be: what it does not need comes behind what gives its input, in the
program and before it. The program is the order of ids, with what a node waits for in front of it. No order changes a
value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ....collector import collector_paused
from ....errors import NotFoundError
from ...analysis.collective_seats import AXIS
from ...builder.tensor_names import Names, tensor_names
from ...columns import SINK_ID, Ids
from ...graph import Graph
from ...ops.properties import NodeProperties
from ...tensor_id import parse_tensor_name
from ..pipelines.seats import is_collective
from .mesh import axis_names

_Edges = list[list[int]]
_ENDED = "backward_pass_ended"


@collector_paused()
def order_exchanges(
    graph: Graph,
    *,
    ends: Names,
    gradients: Names,
    loss: Names,
    hidden: Collection[str],
    batch: Names | None = None,
    free: Names = (),
) -> None:
    """Adds control edges to a rank program, so that its exchanges hide along the axes `hidden` only.

    What leads to the tensors or nodes `ends` is ordered, but for what leads to `free`; given the placeholders `batch`,
    only what follows from their values. What leads to `gradients` comes first. Then the others of a device wait for the
    end of all of that, and their exchanges are exposed. Nodes that do not lead to the `loss` and read what another
    device computed for it, with those that follow, are free: a pipeline chooses a stage for them. An exchange along
    several axes is hidden if all of these are.

    Raises NotFoundError for a name that is not there.
    """
    known = _ids(graph, ends), _ids(graph, gradients), _ids(graph, loss), _ids(graph, free)
    program = _Program(graph, *known, None if batch is None else _ids(graph, batch))
    axes = {node: graph.node_properties(node).attrs.get(AXIS) for node in program.exchanges}
    hides = {
        node: node in program.before and axis_names(of.decode()) <= set(hidden)
        for node, of in axes.items()
        if of is not None
    }
    ordering = _Ordering(program, hides)
    ordering.run()
    for device in ordering.junctions:
        graph.add_node(graph.new_name(_ENDED), "NoOp", device=device)
    for source, target in sorted(ordering.edges):
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
    return is_collective(kind) and not kind.op_def.record.is_view


def _is_read(kind: NodeProperties) -> bool:
    """Whether nodes read a variable: whoever asks for its value does not ask for a step."""
    return kind.op_def.record.reads_handle is not None and len(kind.input_types) == 1


class _Program:
    """The nodes of a graph and what they read, in the order of the program."""

    def __init__(
        self,
        graph: Graph,
        ends: Sequence[int],
        gradients: Sequence[int],
        loss: Sequence[int],
        free: Sequence[int],
        batch: Sequence[int] | None,
    ) -> None:
        live = graph.edge_arrays()
        keep = (live.src > SINK_ID) & (live.dst > SINK_ID)
        src, dst = live.src[keep], live.dst[keep]
        is_data = live.src_output[keep] >= 0
        self.count = graph.num_node_ids
        self.sources = _lists(dst, src, self.count)
        """by node those that it waits for"""
        self.data = _lists(dst[is_data], src[is_data], self.count)
        self._readers = _lists(src, dst, self.count)
        self.device = graph.requested_device_indices().tolist()
        self.device_names = graph.device_names()
        self.before = self.leading_to(gradients)
        """what comes first"""
        self._forward = self.leading_to(loss)
        self.order = self._sorted([node.id for node in graph.op_nodes()])
        self.nodes = self.leading_to(ends) - self.leading_to(free)
        """what is ordered"""
        if batch is not None:
            self.nodes &= self._with_values(batch, graph.flags(lambda kind: kind.op_def.record.reads_shape).tolist())
        is_additive = graph.flags(lambda kind: kind.op_def.record.is_additive).tolist()
        self.nodes -= self._sums({*ends, *gradients}, is_additive)
        self.nodes -= self._without_stage(self._forward)
        is_read = graph.flags(_is_read).tolist()
        self.nodes = {node for node in self.nodes if self.data[node] and not is_read[node]}
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
        """All nodes by id, the forward pass and what comes first before others; what one waits for is in front of it.

        That of a larger id comes no earlier: what runs again was made behind all gradients, and while its turn came
        last, those that need nothing but activations would come before it, of whatever stage they are.
        """
        order, entered = list[int](), set[int]()
        waiting = sorted(nodes, key=lambda node: (-self._turn(node), -node))
        while waiting:
            node = waiting.pop()
            if node < 0:
                order.append(~node)
            elif node not in entered:
                entered.add(node)
                waiting.append(~node)
                waiting += sorted((source for source in self.sources[node] if source not in entered), reverse=True)
        return order

    def _turn(self, node: int) -> int:
        """Nodes of a smaller number are before others that are ready."""
        return (node not in self._forward) + (node not in self.before)

    def _sums(self, ends: set[int], is_additive: Sequence[bool]) -> set[int]:
        """Sums and rearrangements on the way to ends alone: a pipeline moves them behind what several stages do."""
        found = set[int]()
        for node in reversed(self.order):
            if node in ends or any(reader in found for reader in self._readers[node]):
                inside = (reader for reader in self._readers[node] if reader in self.before)
                if is_additive[node] and found.issuperset(inside):
                    found.add(node)
        return found

    def _without_stage(self, forward: set[int]) -> set[int]:
        """The nodes of the backward pass that read activations of other devices, and what follows on their own."""
        found, device = set[int](), self.device
        inner = self.nodes & self.before
        for node in self.order:
            if node in inner and node not in forward:
                near = any(device[s] == device[node] and s in found for s in self.data[node])
                if near or any(device[s] != device[node] and s in forward and s in inner for s in self.data[node]):
                    found.add(node)
        return found

    def _with_values(self, batch: Sequence[int], reads_shape: Sequence[bool]) -> set[int]:
        """The nodes whose inputs depend on values of some placeholders, and not just on their shapes.

        Behind what comes first variables are read again: there all that waits for such a node follows from it.
        """
        found = set(batch)
        for node in self.order:
            sources = self.data[node] if not self.before or node in self.before else self.sources[node]
            if not reads_shape[node] and not found.isdisjoint(sources):
                found.add(node)
        return found.difference(batch)


def _lists(keys: Ids, values: Ids, count: int) -> _Edges:
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
        self.is_behind = False
        """whether what comes first has ended"""


class _Ordering:
    """The control edges of one program; `hides` has the exchanges that are ordered, and whether each is hidden."""

    def __init__(self, program: _Program, hides: dict[int, bool]) -> None:
        self.program, self.hides = program, hides
        self.edges = set[tuple[int, int]]()
        """source and target of each"""
        self.junctions: list[str] = []
        """the devices of nodes to be added, whose ids follow those of the program: many wait there for many"""

    def run(self) -> None:
        """Finds the edges."""
        program, devices = self.program, dict[int, _Device]()
        for node in self._hoisted():
            if node in program.nodes:
                number = program.device[node]
                device = devices.setdefault(number, _Device())
                if program.before and node not in program.before and not device.is_behind:
                    self._end(device, program.device_names[number])
                self._take(device, node, [s for s in program.sources[node] if program.device[s] == number])

    def _end(self, device: _Device, name: str) -> None:
        """Lets later nodes of a device wait for all earlier ones."""
        device.is_behind = True
        if device.open:
            junction = self.program.count + len(self.junctions)
            self.junctions.append(name)
            self._wait(device.open, junction, ())
            device.gates, device.behind, device.open = [junction], {junction}, {junction: None}

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
        self.edges.update((other, node) for other in first if other not in sources)

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
