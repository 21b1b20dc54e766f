"""The inputs of imported nodes: from strings to edges, and the order in which nodes are created.

Inputs are columns with one row per input. Rows are sorted by node; data inputs come by port, then control inputs by
name without duplicates. A source is an index into the GraphDef (>= 0) or `~id` of a node that the graph has already;
port -1 is a control input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from ...errors import InvalidArgumentError
from ..arrays import Numbers, grouped, ready_order
from ..columns import CONTROL_SLOT, Ids
from ..dtypes import REF_OFFSET, dtype_name, types_compatible
from ..graph import Graph
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from ..port_table import PortTable
from ..tensor_id import TensorId, parse_tensor_name
from .import_inputs import InputTexts, NamedNodes

_SHOWN = 12  # nodes of a cycle that an error names


class NodeInputs:
    """Resolved inputs of all nodes: rows `starts[i]` to `starts[i + 1] - 1` are the inputs of node `i`."""

    def __init__(self, texts: InputTexts, input_map: Mapping[TensorId, tuple[int, int]]) -> None:
        """`input_map` gives node id and port of the existing graph. Raises InvalidArgumentError for unknown inputs."""
        self.names = texts.names
        self.index = texts.index
        self.used_map_keys: set[TensorId] = set()
        self._input_map = input_map
        self._texts = texts.kept
        self._set_rows(np.repeat(np.arange(len(self.names), dtype=np.int32), texts.counts), *self._resolve(texts))

    @classmethod
    def of_rows(cls, named: NamedNodes, node: Ids, source: Ids, port: Ids) -> Self:
        """Inputs that are known, in order."""
        inputs = cls.__new__(cls)
        inputs.names, inputs.index = named.names, named.index
        inputs.used_map_keys, inputs._input_map, inputs._texts = set(), {}, {}
        inputs._index_rows(node, source, port)
        return inputs

    def _set_rows(self, node: Ids, source: Ids, port: Ids) -> None:
        self.node, self.source, self.port = node, source, port
        if (port == CONTROL_SLOT).any():
            self._order_control_inputs()
        self._index_rows(self.node, self.source, self.port)

    def _index_rows(self, node: Ids, source: Ids, port: Ids) -> None:
        self.node, self.source, self.port = node, source, port
        self.starts = np.searchsorted(self.node, np.arange(len(self.names) + 1))
        self.slot = np.arange(len(self.node)) - self.starts[self.node]

    def _resolve(self, texts: InputTexts) -> tuple[Ids, Ids]:
        """Source and port of every row; Python code runs only for strings that are not bare names, which are few."""
        source = texts.sources()
        port = np.zeros(len(source), np.int32)
        special: dict[str, tuple[int, int]] = {}
        starts = np.cumsum([0, *texts.counts])
        for row, text in texts.kept.items():
            if text not in special:
                special[text] = self._parse(int(np.searchsorted(starts, row, side="right")) - 1, text)
            source[row], port[row] = special[text]
        return source, port

    def _parse(self, index: int, text: str) -> tuple[int, int]:
        tensor = parse_tensor_name(text)
        mapped = self._input_map.get(tensor)
        if mapped is not None:
            self.used_map_keys.add(tensor)
            return ~mapped[0], mapped[1]
        node = self.index.get(tensor.node)
        if node is None:
            name = self.names[index]
            raise InvalidArgumentError(f"Node '{name}': Unknown input node '{text}'", node=name)
        return node, tensor.index

    def _order_control_inputs(self) -> None:
        """Sorts the control inputs of each node by name and drops repeated ones."""
        control = self.port == CONTROL_SLOT
        late = np.flatnonzero(control[:-1] & ~control[1:] & (self.node[:-1] == self.node[1:]))
        if len(late):
            name = self.names[int(self.node[late[0]])]
            raise InvalidArgumentError(
                f"Node '{name}': Control dependencies must come after regular dependencies", node=name
            )
        rows = np.flatnonzero(control)
        texts = [self._texts[row] for row in rows.tolist()]
        by_name = sorted(range(len(rows)), key=lambda k: (self.node[rows[k]], texts[k]))
        order = np.arange(len(self.node))
        order[rows] = rows[by_name]
        node, source, port = self.node[order], self.source[order], self.port[order]
        kept = np.ones(len(order), np.bool_)
        seen: set[tuple[int, int]] = set()
        for row in rows.tolist():
            pair = int(node[row]), int(source[row])
            kept[row] = pair not in seen
            seen.add(pair)
        self.node, self.source, self.port = node[kept], source[kept], port[kept]

    def sources_of(self, index: int) -> list[tuple[int, int]]:
        """(source, port) of the inputs of one node."""
        rows = slice(self.starts[index], self.starts[index + 1])
        return list(zip(self.source[rows].tolist(), self.port[rows].tolist(), strict=True))

    def num_data(self) -> npt.NDArray[np.int64]:
        """Number of data inputs per node."""
        return np.bincount(self.node[self.port != CONTROL_SLOT], minlength=len(self.names))

    def check_types(
        self, kinds: Sequence[NodeProperties], kind_of: Numbers, graph: Graph, shown: Callable[[str], str] = str
    ) -> None:
        """Raises InvalidArgumentError for an input from a port that its source lacks, or of a wrong type.

        Node `i` is of kind `kinds[kind_of[i]]`; `shown` makes of the name of an imported node the one that messages
        have.
        """
        rows = np.flatnonzero((self.port != CONTROL_SLOT) & (self.source >= 0))
        outputs, inputs = PortTable([k.output_types for k in kinds]), PortTable([k.input_types for k in kinds])
        available = outputs.at(kind_of[self.source[rows]], self.port[rows])
        expected = inputs.at(kind_of[self.node[rows]], self.slot[rows])
        good = (available > 0) & ((available == expected) | (available == expected + REF_OFFSET)) & (expected > 0)
        mapped = np.flatnonzero((self.port != CONTROL_SLOT) & (self.source < 0))
        wrong = np.sort(np.concatenate([rows[~good], mapped])).tolist()
        if wrong:
            properties = list(map(kinds.__getitem__, kind_of.tolist()))
            for row in wrong:
                self._check_row(row, properties, graph, shown)

    def _check_row(
        self, row: int, properties: Sequence[NodeProperties], graph: Graph, shown: Callable[[str], str]
    ) -> None:
        src, port, slot = int(self.source[row]), int(self.port[row]), int(self.slot[row])
        name = self.names[self.node[row]]
        source = self.names[src] if src >= 0 else graph.node_name(~src)
        available = (properties[src] if src >= 0 else graph.node_properties(~src)).output_types
        expected = properties[self.node[row]].input_types
        if port >= len(available) and src >= 0 and _closes_loop(properties, self, row):
            problem = f"Output {port} of node {shown(source)} does not exist. Node only has {len(available)} outputs."
        elif port >= len(available):
            problem = f"Node '{name}': Connecting to invalid output {port} of source node {source} "
            problem += f"which has {len(available)} outputs."
        elif slot >= len(expected):
            problem = f"Input {slot} of node {shown(name)} does not exist. Node only has {len(expected)} inputs."
        elif not types_compatible(expected[slot], available[port]) or expected[slot] == 0:
            source = shown(source) if src >= 0 else source
            problem = (
                f"Input {slot} of node {shown(name)} was passed {dtype_name(available[port])} from {source}:{port} "
            )
            problem += f"incompatible with expected {dtype_name(expected[slot])}."
        else:
            return
        raise InvalidArgumentError(problem, node=name)


def creation_order(names: Sequence[str], properties: Sequence[NodeProperties], inputs: NodeInputs) -> Sequence[int]:
    """GraphDef indices in the order nodes are created: inputs first, lowest index first.

    A Merge with an input from a NextIteration is ready after one data input and all its control inputs. Raises
    InvalidArgumentError for any other cycle.
    """
    backwards = np.flatnonzero(inputs.source >= inputs.node).tolist()
    if all(_closes_loop(properties, inputs, row) for row in backwards):
        return range(len(names))  # the file is in creation order already, which is what programs write
    order = _ready_order(properties, inputs)
    if len(order) < len(names):
        cycle = _cycle(set(range(len(names))).difference(order), properties, inputs)
        shown = " -> ".join(names[i] for i in cycle[:_SHOWN]) + (" -> ..." if len(cycle) > _SHOWN else "")
        raise InvalidArgumentError(f"{len(names) - len(order)} nodes in a cycle: {shown} -> {names[cycle[0]]}")
    return order


def _cycle(stuck: set[int], properties: Sequence[NodeProperties], inputs: NodeInputs) -> list[int]:
    """One cycle among nodes that wait for each other, each node before its consumer, the lowest index first."""
    place: dict[int, int] = {}
    node = min(stuck)
    while node not in place:
        place[node] = len(place)
        sources = [source for source, _ in inputs.sources_of(node) if source in stuck]
        if _class(properties[node]) is NodeClass.MERGE:  # it waits for a NextIteration only without other inputs
            sources = [s for s in sources if _class(properties[s]) is not NodeClass.NEXT_ITERATION] or sources
        node = min(sources)
    path = list(place)[place[node] :][::-1]
    first = path.index(min(path))
    return path[first:] + path[:first]


def _class(properties: NodeProperties) -> NodeClass:
    return properties.op_def.record.node_class


def _closes_loop(properties: Sequence[NodeProperties], inputs: NodeInputs, row: int) -> bool:
    consumer, producer = _class(properties[inputs.node[row]]), _class(properties[inputs.source[row]])
    return consumer is NodeClass.MERGE and producer is NodeClass.NEXT_ITERATION


def _ready_order(properties: Sequence[NodeProperties], inputs: NodeInputs) -> list[int]:
    count = len(properties)
    classes = [_class(p) for p in properties]
    is_merge = np.array([own is NodeClass.MERGE for own in classes], np.bool_)
    is_next = np.array([own is NodeClass.NEXT_ITERATION for own in classes], np.bool_)
    node, source, port = inputs.node, inputs.source, inputs.port
    imported, is_control = source >= 0, port == CONTROL_SLOT
    closes = imported & is_next[np.maximum(source, 0)] & is_merge[node] if count else imported
    in_loop, has_data = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    in_loop[node[closes]] = True
    has_data[node[~imported & ~is_control]] = True
    control = np.bincount(node[imported & is_control], minlength=count)
    pending = np.where(in_loop, control + ~has_data, np.bincount(node[imported], minlength=count))
    counted = imported & ~closes
    starts, order = grouped(source[counted], count)
    targets = node[counted][order].tolist()
    consumers = [targets[first:end] for first, end in pairwise(starts.tolist())]
    return ready_order(consumers, pending.tolist(), lowest_first=True)


def edge_columns(
    new_id: Ids, position: Ids, inputs: NodeInputs, extra_control: Mapping[int, Sequence[int]]
) -> tuple[Ids, Ids, Ids, Ids]:
    """(src, src_output, dst, dst_input) of all new edges in the order of their ids.

    `new_id` and `position` have, by GraphDef index, the node id and the rank in creation order, -1 for nodes that are
    skipped; `extra_control` has ids of existing nodes that run before a node.
    """
    extra = np.array([(i, ~node_id) for i, ids in extra_control.items() for node_id in ids], np.int32).reshape(-1, 2)
    node = np.concatenate([inputs.node, extra[:, 0]])
    source = np.concatenate([inputs.source, extra[:, 1]])
    port = np.concatenate([inputs.port, np.full(len(extra), CONTROL_SLOT, np.int32)])
    slot = np.concatenate([inputs.slot.astype(np.int32), np.zeros(len(extra), np.int32)])
    slot[port == CONTROL_SLOT] = CONTROL_SLOT
    imported = source >= 0
    src = np.where(imported, new_id[np.where(imported, source, 0)] if len(new_id) else source, ~source)
    dst = new_id[node]
    back = imported & (src >= dst)
    order = np.lexsort((position[node], back))
    order = order[dst[order] >= 0]
    return src[order], port[order], dst[order], slot[order]
