"""The inputs of imported nodes: from strings to edges, and the order in which nodes are created.

Flows in: node names, input strings, and the map from tensors of the GraphDef to tensors of the existing graph. Flows out:
per node its (source, port) pairs, the creation order, the edge columns. Always holds: a source is an index into the
GraphDef (>= 0) or `~id` of a node that exists already; port -1 is a control input.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError
from .dtypes import dtype_name, types_compatible
from .graph import Graph
from .node import CONTROL_SLOT, SOURCE_ID
from .properties import NodeProperties
from .tensor_id import TensorId, parse_tensor_name

Source = tuple[int, int]
Column = npt.NDArray[np.int32]

_LOOP_MERGES = frozenset({"Merge", "RefMerge"})
_NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})


class NodeInputs:
    """Input strings of all nodes, resolved."""

    def __init__(
        self, names: list[str], texts: list[tuple[str, ...]], input_map: Mapping[TensorId, tuple[int, int]]
    ) -> None:
        """`texts` are the input strings per node; `input_map` gives node id and port of the existing graph."""
        self.names = names
        self.texts = texts
        self.index = {name: i for i, name in enumerate(names)}
        self.used_map_keys: set[TensorId] = set()
        self._input_map = input_map
        self._known: dict[str, Source] = {}
        self.sources: list[list[Source]] = [self._resolve_all(i, t) if t else [] for i, t in enumerate(texts)]

    def num_data(self, index: int) -> int:
        """Number of data inputs of a node."""
        return sum(1 for _, port in self.sources[index] if port != CONTROL_SLOT)

    def _resolve_all(self, index: int, texts: tuple[str, ...]) -> list[Source]:
        known = self._known
        found = []
        for text in texts:
            source = known.get(text)
            if source is None:
                source = known[text] = self._resolve(index, text)
            found.append(source)
        if texts[-1][:1] == "^":
            return self._in_edge_order(index, found)
        for _, port in found:
            if port == CONTROL_SLOT:
                return self._in_edge_order(index, found)
        return found

    def _resolve(self, index: int, text: str) -> Source:
        node = self.index.get(text)
        if node is not None and not self._input_map:
            return node, 0
        tensor = parse_tensor_name(text)
        mapped = self._input_map.get(tensor)
        if mapped is not None:
            self.used_map_keys.add(tensor)
            return ~mapped[0], mapped[1]
        node = self.index.get(tensor.node)
        if node is None:
            name = self.names[index]
            raise InvalidArgumentError(f"Node {name!r}: Unknown input node {text!r}", node=name)
        return node, tensor.index

    def _in_edge_order(self, index: int, found: list[Source]) -> list[Source]:
        """Data inputs as they are, then control inputs sorted by name without duplicates."""
        first = next(i for i, (_, port) in enumerate(found) if port == CONTROL_SLOT)
        if any(port != CONTROL_SLOT for _, port in found[first:]):
            name = self.names[index]
            raise InvalidArgumentError(f"Node {name!r}: Control dependencies must come after regular dependencies", node=name)
        if len(found) - first == 1:
            return found
        control = dict(zip(self.texts[index][first:], found[first:], strict=True))
        return found[:first] + list(dict.fromkeys(control[text] for text in sorted(control)))

    def check_outputs(self, properties: Sequence[NodeProperties], graph: Graph) -> None:
        """Raises InvalidArgumentError where an input names a port its source lacks, or one of another type."""
        outputs = [p.output_types for p in properties]
        for i, sources in enumerate(self.sources):
            expected = properties[i].input_types
            for slot, (src, port) in enumerate(sources):
                if port == CONTROL_SLOT:
                    break
                available = outputs[src] if src >= 0 else graph.node_properties(~src).output_types
                if port < len(available) and slot < len(expected) and available[port] == expected[slot]:
                    continue
                self._check_port(i, slot, src, port, expected, available, graph)

    def _check_port(
        self,
        index: int,
        slot: int,
        src: int,
        port: int,
        expected: Sequence[int],
        available: Sequence[int],
        graph: Graph,
    ) -> None:
        name = self.names[index]
        source = self.names[src] if src >= 0 else graph.node_name(~src)
        if port >= len(available):
            raise InvalidArgumentError(
                f"Node {name!r}: Connecting to invalid output {port} of source node {source} "
                f"which has {len(available)} outputs.",
                node=name,
            )
        if slot >= len(expected):
            raise InvalidArgumentError(
                f"Input {slot} of node {name} does not exist. Node only has {len(expected)} inputs.", node=name
            )
        if not types_compatible(expected[slot], available[port]):
            raise InvalidArgumentError(
                f"Input {slot} of node {name} was passed {dtype_name(available[port])} from {source}:{port} "
                f"incompatible with expected {dtype_name(expected[slot])}.",
                node=name,
            )


def creation_order(names: Sequence[str], ops: Sequence[str], inputs: NodeInputs) -> Sequence[int]:
    """GraphDef indices in the order nodes are created: inputs first, lowest index first.

    A Merge fed by a NextIteration is ready after one data input and all its control inputs. Raises InvalidArgumentError
    when nodes wait for each other in any other circle, or a node that is no Merge has an input that comes later.
    """
    backwards = [(i, s) for i, sources in enumerate(inputs.sources) for s, _ in sources if s >= i]
    if all(ops[i] in _LOOP_MERGES and ops[s] in _NEXT_ITERATIONS for i, s in backwards):
        return range(len(names))  # the file is in creation order already, which is what programs write
    order = _ready_order(ops, inputs)
    if len(order) < len(names):
        raise InvalidArgumentError(f"{len(names) - len(order)} nodes in a cycle")
    return order


def _ready_order(ops: Sequence[str], inputs: NodeInputs) -> list[int]:
    pending = [0] * len(ops)
    consumers: list[list[int]] = [[] for _ in ops]
    for i, sources in enumerate(inputs.sources):
        imported = [(s, port) for s, port in sources if s >= 0]
        in_loop = ops[i] in _LOOP_MERGES and any(ops[s] in _NEXT_ITERATIONS for s, _ in imported)
        control = sum(1 for _, port in imported if port == CONTROL_SLOT)
        satisfied_data = any(s < 0 and port != CONTROL_SLOT for s, port in sources)
        pending[i] = control + (0 if satisfied_data else 1) if in_loop else len(imported)
        for s, _ in imported:
            if not (in_loop and ops[s] in _NEXT_ITERATIONS):
                consumers[s].append(i)
    ready = [i for i, count in enumerate(pending) if count == 0]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for consumer in consumers[i]:
            pending[consumer] -= 1
            if pending[consumer] == 0:
                heapq.heappush(ready, consumer)
    return order


def edge_columns(
    new_id: Column, created: Sequence[int], inputs: NodeInputs, extra_control: Mapping[int, Sequence[int]]
) -> tuple[Column, Column, Column, Column]:
    """(src, src_output, dst, dst_input) of all new edges in the order of their ids.

    `new_id` gives the node id per GraphDef index; `extra_control` ids of existing nodes that run before a node.
    """
    src, ports, dst, slots = [], [], [], []
    sources = inputs.sources
    for i in created:
        for slot, (s, port) in enumerate(sources[i]):
            src.append(s)
            ports.append(port)
            dst.append(i)
            slots.append(slot)
        for node_id in extra_control.get(i, ()):
            src.append(~node_id)
            ports.append(CONTROL_SLOT)
            dst.append(i)
            slots.append(0)
    source, port_column = np.array(src, np.int32), np.array(ports, np.int32)
    node = np.where(source >= 0, new_id[np.maximum(source, SOURCE_ID)] if len(new_id) else source, ~source).astype(np.int32)
    target = new_id[np.array(dst, np.int64)] if dst else np.zeros(0, np.int32)
    slot_column = np.where(port_column == CONTROL_SLOT, CONTROL_SLOT, np.array(slots, np.int32)).astype(np.int32)
    back = node >= target
    order = np.concatenate([np.flatnonzero(~back), np.flatnonzero(back)])
    return node[order], port_column[order], target[order], slot_column[order]
