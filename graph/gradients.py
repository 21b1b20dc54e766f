"""Gradients: adds to a graph the nodes that compute d ys / d xs.

Flows in: a graph, names of the tensors to differentiate and of those to differentiate by. Flows out: the same graph
with more nodes, and the names of the gradients. Always holds: only nodes between xs and ys get a gradient; a node is
asked for it once, when all that will flow back into its outputs is known; a value used several times gets the sum.

    xs --forward--> reached nodes          between = reached from xs and leading to ys
    ys --backward--> nodes between         pending[node] = consumers between that have not been undone yet

The walk starts from the ys. A node whose pending count is zero adds up what has flowed back into each of its outputs
(AddN), and its op's rule says what flows on into its inputs. (Reverse accumulation; Linnainmaa 1970.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import InvalidArgumentError, NotFoundError
from .columns import SINK_ID, SOURCE_ID
from .dtypes import DataType, base_type
from .extension import Extension
from .graph import Graph
from .handles import Tensor
from .node import Node
from .ops.gradients.registry import Forward, Gradient, Gradients, IndexedSlices, is_registered, lookup
from .tensor_id import parse_tensor_name

Output = tuple[int, int]
"""(node id, port)"""

DIFFERENTIABLE = frozenset(
    {
        DataType.HALF,
        DataType.BFLOAT16,
        DataType.FLOAT,
        DataType.DOUBLE,
        DataType.COMPLEX64,
        DataType.COMPLEX128,
        DataType.RESOURCE,
        DataType.VARIANT,
    }
)
"""types that something can flow back through; resources and variants stand for what they hold"""


def gradients(
    graph: Graph,
    ys: Sequence[str],
    xs: Sequence[str],
    grad_ys: Sequence[str | None] | None = None,
    stop_gradients: Sequence[str] = (),
) -> list[str | None]:
    """Adds the gradients of the sum of `ys` by each of `xs` to `graph` and returns their names.

    Tensors are named "node:port"; `xs` may also be references to variables or resource handles, whose gradient is that
    of the value. `grad_ys` are tensors of the shapes and types of `ys` to begin with, ones where None; nothing flows
    back through `stop_gradients`. None stands for an x that no y depends on differentiably; what flows back as rows is
    made dense. New nodes are on the devices of the nodes they undo.

    Raises NotFoundError for names that are not there and for an op between xs and ys that has no gradient,
    InvalidArgumentError for ys that are not of a floating or complex type and for `grad_ys` that do not fit.
    """
    walk = Backward(graph, [_output(graph, name) for name in ys], [_output(graph, name) for name in xs])
    walk.stop = {_output(graph, name)[0] for name in stop_gradients}
    walk.start(grad_ys or [None] * len(ys))
    walk.run()
    found = [walk.dense(walk.total(output)) for output in walk.xs]
    graph.fix_source_and_sink_edges()
    return [None if tensor is None else tensor.name for tensor in found]


def _output(graph: Graph, name: str) -> Output:
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    if node is None:
        raise NotFoundError(f"no node {tensor.node!r} in the graph; gradients are asked for by tensor name")
    if not 0 <= tensor.index < node.num_outputs:
        raise InvalidArgumentError(f"node {tensor.node!r} has no output {tensor.index}", node=tensor.node, op=node.op)
    return node.id, tensor.index


class ForwardNode(Forward):
    """A node outside of loops: its tensors are there to be read."""

    __slots__ = ("node",)

    def __init__(self, extension: Extension, node: Node) -> None:
        super().__init__(extension, node.name, node.op, node.attrs, node.input_types, node.output_types)
        self.node = node

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors the node reads."""
        edges = self.node.input_edges()
        return [Tensor(self.g, e.src.name, e.src_output, e.src.output_types[e.src_output]) for e in edges]

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The tensors the node makes."""
        return [Tensor(self.g, self.name, port, dtype) for port, dtype in enumerate(self.output_types)]


@dataclass
class Backward:
    """One walk from ys to xs. `flowed[output]` is what has flowed back into an output so far."""

    graph: Graph
    ys: list[Output]
    xs: list[Output]
    stop: set[int] = field(default_factory=set)
    flowed: dict[Output, list[Gradient]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.extension = Extension(self.graph)
        self.pending = self._pending()
        self.ready: deque[int] = deque()

    def start(self, grad_ys: Sequence[str | None]) -> None:
        """Begins with what flows back into the ys: ones, or what is given."""
        if len(grad_ys) != len(self.ys):
            raise InvalidArgumentError(f"{len(self.ys)} ys but {len(grad_ys)} grad_ys; give None for ones")
        for (node_id, port), given in zip(self.ys, grad_ys, strict=True):
            node = self.graph.node(node_id)
            y = Tensor(self.extension, node.name, port, base_type(node.output_types[port]))
            if y.dtype not in DIFFERENTIABLE:
                raise InvalidArgumentError(
                    f"cannot differentiate {y.name!r}: its type {y.dtype.name.lower()} is neither floating nor complex",
                    node=node.name,
                )
            self.flowed.setdefault((node_id, port), []).append(self._first(y, given))
        self.ready.extend(node for node in dict.fromkeys(node for node, _ in self.ys) if not self.pending.get(node))

    def _first(self, y: Tensor, given: str | None) -> Tensor:
        if given is None:
            shape = self.extension.op("Shape", y, name="gradients/Shape")
            one = self.extension.constant(1, y.dtype, name="gradients/one")
            return self.extension.op("Fill", shape, one, name="gradients/grad_ys")[0]
        tensor = self.extension.tensor(given)
        if base_type(tensor.dtype) != y.dtype:
            raise InvalidArgumentError(
                f"grad_ys {given!r} is of type {tensor.dtype.name.lower()}, y {y.name!r} of {y.dtype.name.lower()}"
            )
        return tensor

    def _pending(self) -> dict[int, int]:
        """Per node between xs and ys: how many of its consumers between have to be undone before it."""
        reached = self._reached()
        counts: dict[int, int] = {}
        queue = deque(node for node, _ in self.ys if node in reached)
        between = set(queue)
        while queue:
            node = queue.popleft()
            for src, port in self.sources(node):
                if src in reached and self._carries(src, port):
                    counts[src] = counts.get(src, 0) + 1
                    if src not in between:
                        between.add(src)
                        queue.append(src)
        self.between = between
        return counts

    def _reached(self) -> set[int]:
        """The nodes that xs lead to by tensors that something can flow back through."""
        reached = {node for node, _ in self.xs}
        queue = deque(reached)
        while queue:
            node = queue.popleft()
            for edge in self.graph.out_edge_ids(node):
                _, port, dst, slot = self.graph.edge_ends(edge)
                if slot >= 0 and dst > SINK_ID and dst not in reached and self._carries(node, port):
                    reached.add(dst)
                    queue.append(dst)
        return reached

    def _carries(self, node: int, port: int) -> bool:
        return base_type(self.graph.node_properties(node).output_types[port]) in DIFFERENTIABLE

    def sources(self, node: int) -> list[Output]:
        """What a node reads, by input port."""
        ends = [self.graph.edge_ends(edge) for edge in self.graph.in_edge_ids(node)]
        data = sorted((end for end in ends if end[3] >= 0 and end[0] != SOURCE_ID), key=lambda end: end[3])
        return [(src, port) for src, port, _, _ in data]

    def run(self) -> None:
        """Undoes one node after the other until none is left."""
        wanted = {node for node, _ in self.xs}
        while self.ready:
            node = self.ready.popleft()
            sources = self.sources(node)
            into: Gradients = [None] * len(sources)
            if node in self.between and node not in self.stop and (self._leads_on(sources) or node not in wanted):
                into = self._undo(self.graph.node(node))
            for source, gradient in zip(sources, into, strict=True):
                self._flow(source, gradient)

    def _leads_on(self, sources: Sequence[Output]) -> bool:
        return any(src in self.between for src, _ in sources)

    def _flow(self, source: Output, gradient: Gradient) -> None:
        node = source[0]
        if gradient is not None:
            self.flowed.setdefault(source, []).append(gradient)
        if node in self.between and self._carries(*source):
            self.pending[node] -= 1
            if not self.pending[node]:
                self.ready.append(node)

    def _undo(self, node: Node) -> Gradients:
        """What flows back into the inputs of a node."""
        count = len(node.input_types)
        into = [self.total((node.id, port)) for port in range(node.num_outputs)]
        if all(gradient is None for gradient in into):
            return [None] * count
        if not is_registered(node.op):
            raise NotFoundError(
                f"no gradient is known for op {node.op!r}; stop gradients before it or add a rule", node=node.name
            )
        rule = lookup(node.op)
        if rule is None:
            return [None] * count
        forward = ForwardNode(self.extension, node)
        with self.extension.device(node.requested_device), self.extension.scope(f"gradients/{node.name}_grad"):
            made = rule(forward, *[self._or_zeros(forward, port, gradient) for port, gradient in enumerate(into)])
        return list(made)

    def _or_zeros(self, forward: Forward, port: int, gradient: Gradient) -> Tensor | None:
        """What flows back into an output as a dense tensor, zeros if nothing does."""
        if gradient is not None:
            return self.dense(gradient)
        if base_type(forward.output_types[port]) not in DIFFERENTIABLE - {DataType.RESOURCE, DataType.VARIANT}:
            return None
        return self.extension.op("ZerosLike", forward.outputs[port])[0]

    def total(self, output: Output) -> Gradient:
        """The sum of all that has flowed back into an output, in the order of its coming; None if nothing has."""
        parts = [part for part in self.flowed.get(output, ()) if part is not None]
        if len(parts) > 1:
            if all(isinstance(part, IndexedSlices) for part in parts):
                total: Gradient = self._joined([part for part in parts if isinstance(part, IndexedSlices)])
            else:
                total = self.extension.op("AddN", [self.dense(part) for part in parts], name="gradients/AddN")[0]
            self.flowed[output] = [total]
            return total
        return parts[0] if parts else None

    def _joined(self, parts: Sequence[IndexedSlices]) -> IndexedSlices:
        """Rows of several gradients of one tensor, one after the other."""
        g = self.extension
        axis = g.constant(0, DataType.INT32, name="gradients/axis")
        values = g.op("ConcatV2", [part.values for part in parts], axis, name="gradients/values")[0]
        indices = g.op("ConcatV2", [part.indices for part in parts], axis, name="gradients/indices")[0]
        return IndexedSlices(values, indices, parts[0].dense_shape)

    def dense(self, gradient: Gradient) -> Tensor | None:
        """A gradient as a tensor of the shape of what it is the gradient of."""
        if not isinstance(gradient, IndexedSlices):
            return gradient
        g = self.extension
        size = g.op(
            "StridedSlice",
            gradient.dense_shape,
            g.constant([0], DataType.INT32),
            g.constant([1], DataType.INT32),
            g.constant([1], DataType.INT32),
            shrink_axis_mask=1,
            name="gradients/rows",
        )
        return g.op("UnsortedSegmentSum", gradient.values, gradient.indices, size, name="gradients/dense")[0]
