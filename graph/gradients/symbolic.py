"""TensorFlow's `AddSymbolicGradients`: one SymbolicGradient node for every node between xs and ys.

    forward     x -> f -> y        backward   x, dy -> SymbolicGradient(f) -> dx

Nodes, their order, names and attrs are TensorFlow's. The rules of ops are not used here: `function.py` looks them up
when such a node is to run. Unlike `gradients`, and as in TensorFlow, every consumer of an output is waited for, even
one that no y depends on; the gradient of such an x is the sum of the gradients so far, or zeros.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ...errors import InternalError
from ..dtypes import DataType
from ..edge_ends import Output
from ..graph import Graph
from ..node import Node
from ..ops.properties import NodeProperties
from ..protos import NameAttrList
from .forward import result_types

_LABEL = "Func"


def add_symbolic_gradients(
    graph: Graph, ys: Sequence[Output], xs: Sequence[Output], y_grads: Sequence[Output]
) -> list[Output]:
    """Adds the gradients of `ys` by `xs` and returns them; outputs are pairs of node id and port.

    `ys` belong to nodes that only pass values out, such as `_Retval`: the outputs that these read get `y_grads`, one
    each. Nodes of `xs` have one output. Raises InternalError when xs do not lead to ys.
    """
    return _SymbolicGradients(graph, xs).run(ys, y_grads)


class _SymbolicGradients:
    """One walk; `flowed` has an entry for every output that an x leads to."""

    def __init__(self, graph: Graph, xs: Sequence[Output]) -> None:
        self.graph = graph
        self.xs = xs
        self.stop = {node for node, _ in xs}
        self.flowed: dict[Output, list[Output]] = {}
        self.pending: dict[int, int] = {}
        self.ready: deque[int] = deque()
        self._reach()

    def _reach(self) -> None:
        queue = list(dict.fromkeys(node for node, _ in self.xs))
        visited = set(queue)
        for node_id in queue:  # grows
            node = self.graph.node(node_id)
            for port in range(node.num_outputs):
                self.flowed[node_id, port] = []
            readers = [edge.dst.id for edge in node.out_edges() if not edge.is_control]
            self.pending[node_id] = len(readers)
            for reader in readers:
                if reader not in visited:
                    visited.add(reader)
                    queue.append(reader)

    def run(self, ys: Sequence[Output], y_grads: Sequence[Output]) -> list[Output]:
        """Adds the nodes; returns the gradients of the xs."""
        for (node_id, _), gradient in zip(ys, y_grads, strict=True):
            for source, _ in _sources(self.graph.node(node_id)):
                self._flow(source, gradient)
        if not self.ready:
            raise InternalError("no x leads to a y, or something else reads what the ys read")
        while self.ready:
            node_id = self.ready.popleft()
            if node_id not in self.stop:
                self._undo(self.graph.node(node_id))
        return [self._total(x) for x in self.xs]

    def _flow(self, source: Output, gradient: Output | None) -> None:
        if source not in self.flowed:
            return
        if gradient is not None:
            self.flowed[source].append(gradient)
        self.pending[source[0]] -= 1
        if self.pending[source[0]] == 0:
            self.ready.append(source[0])

    def _undo(self, node: Node) -> None:
        grads = [self._total((node.id, port)) for port in range(node.num_outputs)]
        sources = _sources(node)
        if node.properties.op_def.record.is_flat_in_functions:
            for source, _ in sources:
                self._flow(source, None)
            return
        gradient = self._gradient_node(node, grads)
        for (src, output), port in sources:
            self.graph.add_edge(self.graph.node(src), output, gradient, port)
        for port, (src, output) in enumerate(grads, node.num_inputs):
            self.graph.add_edge(self.graph.node(src), output, gradient, port)
        for source, port in sources:
            self._flow(source, (gradient.id, port))

    def _gradient_node(self, node: Node, grads: Sequence[Output]) -> Node:
        types = [*node.input_types, *map(self._type, grads)]
        attrs = {"Tin": types, "Tout": result_types(node.input_types), "f": function_of(node.properties)}
        return self.graph.add_node(self.graph.new_name(_LABEL), "SymbolicGradient", attrs)

    def _type(self, output: Output) -> DataType:
        return self.graph.node(output[0]).output_types[output[1]]

    def _total(self, output: Output) -> Output:
        """The sum of the gradients of an output; zeros if there are none."""
        dtype, parts = self._type(output), self.flowed[output]
        if not parts or dtype is DataType.BOOL:
            return self._zeros_like(output, dtype)
        if len(parts) == 1:
            return parts[0]
        return self._add("AddN", parts, {"N": len(parts), "T": dtype})

    def _zeros_like(self, output: Output, dtype: DataType) -> Output:
        if dtype is DataType.RESOURCE:
            output = self._add("ReadVariableOp", [output], {"dtype": DataType.FLOAT})
            dtype = DataType.FLOAT
        return self._add("ZerosLike", [output], {"T": dtype})

    def _add(self, op: str, inputs: Sequence[Output], attrs: dict[str, object]) -> Output:
        node = self.graph.add_node(self.graph.new_name(_LABEL), op, attrs)
        for port, (src, output) in enumerate(inputs):
            self.graph.add_edge(self.graph.node(src), output, node, port)
        return node.id, 0


def _sources(node: Node) -> list[tuple[Output, int]]:
    """The outputs that a node reads, with the input port, in the order in which the edges were added."""
    edges = [edge for edge in node.in_edges() if not edge.is_control]
    return [((edge.src.id, edge.src_output), edge.dst_input) for edge in edges]


def function_of(properties: NodeProperties) -> NameAttrList:
    """A node as a function: its op and all its attrs."""
    function = NameAttrList(name=properties.op)
    for name in properties.attrs:
        function.attr[name].CopyFrom(properties.attrs.message(name))
    return function
