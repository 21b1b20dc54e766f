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
from .data_edges import DataEdges, Output
from .dtypes import Array, DataType, base_type
from .extension import Extension
from .graph import Graph
from .handles import Tensor
from .ops.gradients.registry import Forward, Gradient, Gradients, IndexedSlices, is_registered, lookup, takes_none
from .properties import NodeProperties
from .sizes import SizeFacts, Sizes, static
from .tensor_id import parse_tensor_name

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
    found = [walk.result(output) for output in walk.xs]
    walk.extension.graph()
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

    __slots__ = ("_inputs", "node", "walk")

    def __init__(self, walk: Backward, node: int) -> None:
        properties = walk.graph.node_properties(node)
        types = properties.input_types, properties.output_types
        super().__init__(walk.extension, walk.graph.node_name(node), properties.op_def.name, properties.attrs, *types)
        self.walk = walk
        self.node = node
        self._inputs: list[Tensor] | None = None

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors the node reads."""
        if self._inputs is None:
            self._inputs = [self.walk.tensor(source) for source in self.walk.edges.sources(self.node)]
        return self._inputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The tensors the node makes."""
        return [Tensor(self.g, self.name, port, dtype) for port, dtype in enumerate(self.output_types)]

    def wants(self, port: int) -> bool:
        """Whether an x leads to that input."""
        source = self.walk.edges.sources(self.node)[port]
        return source[0] in self.walk.between and self.walk.carries(*source)

    def input_sizes(self, port: int) -> Sizes | None:
        """What is known of the sizes of an input."""
        return self.walk.sizes.of(self.walk.edges.sources(self.node)[port])

    def output_sizes(self, port: int) -> Sizes | None:
        """What is known of the sizes of an output."""
        return self.walk.sizes.of((self.node, port))

    def constant_input(self, port: int) -> Array | None:
        """The value of an input that is a Const, else None."""
        source = self.walk.graph.node_properties(self.walk.edges.sources(self.node)[port][0])
        if source.op_def.name != "Const":
            return None
        value: Array = source.attrs["value"]
        return value


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
        self.edges = DataEdges(self.graph)
        self.sizes = SizeFacts(self.edges.sources, self.graph.node_properties)
        self._carrying: dict[NodeProperties, tuple[bool, ...]] = {}
        self.between: set[int] = set()
        self.pending = self._pending()
        self.ready: deque[int] = deque()

    def tensor(self, output: Output) -> Tensor:
        """The handle of an output of the graph; of a reference, of the value it refers to."""
        node, port = output
        dtype = base_type(self.graph.node_properties(node).output_types[port])
        return Tensor(self.extension, self.graph.node_name(node), port, dtype)

    def start(self, grad_ys: Sequence[str | None]) -> None:
        """Begins with what flows back into the ys: ones, or what is given."""
        if len(grad_ys) != len(self.ys):
            raise InvalidArgumentError(f"{len(self.ys)} ys but {len(grad_ys)} grad_ys; give None for ones")
        for output, given in zip(self.ys, grad_ys, strict=True):
            y = self.tensor(output)
            if y.dtype not in DIFFERENTIABLE:
                raise InvalidArgumentError(
                    f"cannot differentiate {y.name!r}: its type {y.dtype.name.lower()} is neither floating nor complex",
                    node=y.node,
                )
            self.extension.move_to(self.graph.requested_device(output[0]), "gradients")
            self.flowed.setdefault(output, []).append(self._first(output, y, given))
        self.ready.extend(node for node in dict.fromkeys(node for node, _ in self.ys) if not self.pending.get(node))

    def _first(self, output: Output, y: Tensor, given: str | None) -> Tensor:
        g = self.extension
        if given is None:
            return g.op("OnesLike", y, name="grad_ys")[0]
        tensor = self.tensor(_output(self.graph, given))
        if tensor.dtype != y.dtype:
            raise InvalidArgumentError(
                f"grad_ys {given!r} is of type {tensor.dtype.name.lower()}, y {y.name!r} of {y.dtype.name.lower()}"
            )
        wanted, found = static(self.sizes.of(output)), static(self.sizes.of(_output(self.graph, given)))
        if wanted is not None and found is not None and wanted != found:
            raise InvalidArgumentError(f"grad_ys {given!r} is of shape {found}, y {y.name!r} of {wanted}")
        return tensor

    def _pending(self) -> dict[int, int]:
        """Per node between xs and ys: how many of its consumers between have to be undone before it."""
        reached = self._reached()
        counts: dict[int, int] = {}
        queue = [node for node in dict.fromkeys(node for node, _ in self.ys) if node in reached]
        between = self.between = set(queue)
        for node in queue:  # grows
            for src, port in self.edges.sources(node):
                if src in reached and self.carries(src, port):
                    counts[src] = counts.get(src, 0) + 1
                    if src not in between:
                        between.add(src)
                        queue.append(src)
        return counts

    def _reached(self) -> set[int]:
        """The nodes that xs lead to by tensors that something can flow back through."""
        queue = list(dict.fromkeys(node for node, _ in self.xs))
        reached = set(queue)
        for node in queue:  # grows
            for reader, port in self.edges.readers(node):
                if reader not in reached and self.carries(node, port):
                    reached.add(reader)
                    queue.append(reader)
        return reached

    def carries(self, node: int, port: int) -> bool:
        """Whether something can flow back into an output."""
        properties = self.graph.node_properties(node)
        carrying = self._carrying.get(properties)
        if carrying is None:
            carrying = tuple([base_type(dtype) in DIFFERENTIABLE for dtype in properties.output_types])
            self._carrying[properties] = carrying
        return carrying[port]

    def run(self) -> None:
        """Undoes one node after the other until none is left."""
        wanted = {node for node, _ in self.xs}
        while self.ready:
            node = self.ready.popleft()
            sources = self.edges.sources(node)
            into: Gradients = [None] * len(sources)
            if node in self.between and node not in self.stop and (node not in wanted or self._leads_on(sources)):
                into = self._undo(node)
            for source, gradient in zip(sources, into, strict=True):
                self._flow(source, gradient)

    def _leads_on(self, sources: Sequence[Output]) -> bool:
        return any(src in self.between and self.carries(src, port) for src, port in sources)

    def _flow(self, source: Output, gradient: Gradient) -> None:
        node = source[0]
        if gradient is not None:
            self.flowed.setdefault(source, []).append(gradient)
        if node in self.between and self.carries(*source):
            self.pending[node] -= 1
            if not self.pending[node]:
                self.ready.append(node)

    def _undo(self, node: int) -> Gradients:
        """What flows back into the inputs of a node."""
        properties = self.graph.node_properties(node)
        op = properties.op_def.name
        self.extension.move_to(self.graph.requested_device(node), "gradients")
        into = [self.total((node, port)) for port in range(len(properties.output_types))]
        nothing = [None] * len(properties.input_types)
        if all(gradient is None for gradient in into):
            return nothing
        if not is_registered(op):
            raise NotFoundError(
                f"no gradient is known for op {op!r}; stop gradients before it or add a rule",
                node=self.graph.node_name(node),
            )
        rule = lookup(op)
        if rule is None:
            return nothing
        forward = ForwardNode(self, node)
        self.extension.move_to(self.graph.requested_device(node), f"gradients/{forward.name}_grad")
        fill = not takes_none(op)
        return rule(forward, *[self._as_tensor(forward, port, gradient, fill) for port, gradient in enumerate(into)])

    def _as_tensor(self, forward: Forward, port: int, gradient: Gradient, fill: bool) -> Tensor | None:
        """What flows back into an output as a dense tensor; if nothing does, zeros where they are wanted."""
        if gradient is not None or not fill:
            return self.dense(gradient)
        if base_type(forward.output_types[port]) not in DIFFERENTIABLE - {DataType.RESOURCE, DataType.VARIANT}:
            return None
        return self.extension.op("ZerosLike", forward.outputs[port])[0]

    def result(self, x: Output) -> Tensor | None:
        """The gradient of an x, all added up."""
        self.extension.move_to(self.graph.requested_device(x[0]), "gradients")
        return self.dense(self.total(x))

    def total(self, output: Output) -> Gradient:
        """The sum of all that has flowed back into an output, in the order of its coming; None if nothing has."""
        parts = self.flowed.get(output)
        if parts is None:
            return None
        if len(parts) > 1:
            rows = [part for part in parts if isinstance(part, IndexedSlices)]
            if len(rows) == len(parts):
                total: Gradient = self._joined(rows)
            else:
                total = self.extension.op("AddN", [self.dense(part) for part in parts], name="AddN")[0]
            parts[:] = [total]
        return parts[0]

    def _joined(self, parts: Sequence[IndexedSlices]) -> IndexedSlices:
        """Rows of several gradients of one tensor, one after the other."""
        g = self.extension
        axis = g.constant(0, DataType.INT32, name="axis")
        values = g.op("ConcatV2", [part.values for part in parts], axis, name="values")[0]
        indices = g.op("ConcatV2", [part.indices for part in parts], axis, name="indices")[0]
        return IndexedSlices(values, indices, parts[0].dense_shape)

    def dense(self, gradient: Gradient) -> Tensor | None:
        """A gradient as a tensor of the shape of what it is the gradient of."""
        if not isinstance(gradient, IndexedSlices):
            return gradient
        g = self.extension
        zero, one = g.constant([0], DataType.INT32), g.constant([1], DataType.INT32)
        rows = g.op("StridedSlice", gradient.dense_shape, zero, one, one, shrink_axis_mask=1, name="rows")
        return g.op("UnsortedSegmentSum", gradient.values, gradient.indices, rows, name="dense")[0]
