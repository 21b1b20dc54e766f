"""Adds the nodes that compute d ys / d xs to a graph, by reverse accumulation (Linnainmaa 1970).

    xs --forward--> reached nodes          between = reached from xs and leading to ys
    ys --backward--> nodes between         pending[node] = consumers between whose rules have not run yet

The walk starts at the ys. When a node's pending count is zero, the gradients of each of its outputs are summed (AddN),
and the rule of its op adds the gradients of its inputs. So each rule runs once, and only for nodes between xs and ys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from ...errors import InvalidArgumentError, NotFoundError
from ..analysis.gradient_rules import Forward, Gradient, Gradients
from ..analysis.sizes import GivenSizes, static
from ..builder.builder import GraphBuilder
from ..builder.handles import Tensor
from ..builder.tensor_names import Name, Names, tensor_names
from ..dtypes import Array, DataType, base_type, is_ref, item_size
from ..edge_ends import Output
from ..graph import Graph
from ..graphdef.sources import check_graph
from ..passes.lower_functional import expand
from ..protos import NameAttrList
from ..tensor_id import parse_tensor_name
from .forward import DIFFERENTIABLE, ForwardGraph, result_types
from .loops import DifferentiatedLoop
from .named_rules import rule_of
from .stacks import stacks_to_lists
from .sums import dense, summed
from .undo_loop import undo_loop

T = TypeVar("T")
_VALUES = DIFFERENTIABLE - {DataType.RESOURCE, DataType.VARIANT}
_OTHER_NUMBERS = frozenset(dtype for dtype in DataType if dtype and not is_ref(dtype) and item_size(dtype)) - _VALUES
"""types of ys without a gradient: integers, bools, quantised types, floats of at most eight bits"""


def gradients(
    graph: Graph | GraphBuilder,
    ys: Names,
    xs: Names,
    grad_ys: Sequence[Name | None] | None = None,
    stop_gradients: Names = (),
) -> list[str | None]:
    """Adds the gradients of the sum of `ys` by each of `xs` to `graph` and returns their names.

    A `GraphBuilder` can go on with the names, to write an optimizer for example; it is unchanged if this raises.

    Tensors are named "node:port", or given as a `GraphBuilder` made them; `xs` may also be references to variables or
    resource handles, whose gradient is that of the value. `grad_ys` are initial gradients of the shapes and types of
    `ys`, None meaning ones; no gradient passes `stop_gradients`. The result has None for an x that no y depends on
    differentiably; an `IndexedSlices` gradient is made dense. New nodes request the devices of the forward nodes.

    Conditionals, loops and calls of functions between xs and ys are lowered first (see `passes/lower_functional.py`),
    except calls whose gradient function the library names. A node's attr `_gradient_op_type` names another rule than
    that of its op, as in TensorFlow (`named_rules.py`). Ys of integers or bools have no gradient and do not affect
    the others.

    Raises NotFoundError for unknown names and for an op between xs and ys that has no gradient, InvalidArgumentError
    for ys that are neither numbers nor bools, for complex ones without `grad_ys`, for xs and ys inside of loops and for
    `grad_ys` that do not fit, UnimplementedError for loops that `loops.py` does not support.
    """
    if isinstance(graph, GraphBuilder):
        built = graph.graph()
        names = gradients(built, ys, xs, grad_ys, stop_gradients)
        graph.replace(built)
        return names
    check_graph(graph)
    ys, xs, stop_gradients = map(tensor_names, (ys, xs, stop_gradients))
    begin_with = [None if g is None else tensor_names(g)[0] for g in grad_ys or [None] * len(ys)]
    forward = _forward_graph(graph, xs, stop_gradients)
    functional = forward.functional([_output(graph, name) for name in ys])
    taken = forward.taken_by_calls(functional)
    if functional:
        expand(graph, functional)
        forward = _forward_graph(graph, xs, stop_gradients)
    if stacks_to_lists(forward, [_output(graph, name) for name in ys]):
        forward = _forward_graph(graph, xs, stop_gradients)
    targets, sources = [_output(graph, name) for name in ys], [_output(graph, name) for name in xs]
    forward.check_outside([*targets, *sources])
    walk = Backward(forward)
    walk.fill(targets, [_output(graph, name) for name in taken if _exists(graph, name)])
    walk.start(targets, begin_with)
    walk.run()
    results = [walk.result(source) for source in sources]
    forward.extension.graph()
    return [None if tensor is None else tensor.name for tensor in results]


def _forward_graph(graph: Graph, xs: Sequence[str], stop: Sequence[str]) -> ForwardGraph:
    return ForwardGraph(graph, [_output(graph, name) for name in xs], [_output(graph, name)[0] for name in stop])


def _exists(graph: Graph, name: str) -> bool:
    """Whether a tensor is still there; what a call has given may be gone in the body of a function."""
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    return node is not None and tensor.index < node.num_outputs


def _output(graph: Graph, name: str) -> Output:
    tensor = parse_tensor_name(name)
    node = graph.find_node(tensor.node)
    if node is None:
        raise NotFoundError(f"no node {tensor.node!r} in the graph; gradients are asked for by tensor name")
    if not 0 <= tensor.index < node.num_outputs:
        raise InvalidArgumentError(f"node {tensor.node!r} has no output {tensor.index}", node=tensor.node, op=node.op)
    return node.id, tensor.index


class ForwardNode(Forward):
    """A node outside of loops, whose tensors its rule can read directly."""

    __slots__ = ("_inputs", "_sources", "node", "walk")

    def __init__(self, walk: Backward, node: int) -> None:
        graph = walk.graph
        properties = graph.node_properties(node)
        types = properties.input_types, properties.output_types
        super().__init__(walk.extension, graph.node_name(node), properties.op_def.name, properties.attrs, *types)
        self.walk = walk
        self.node = node
        self.source = walk.forward.source
        self._sources = walk.forward.sources(node)
        self._inputs: list[Tensor] | None = None

    @property
    def inputs(self) -> Sequence[Tensor]:
        """The tensors that the node reads."""
        if self._inputs is None:
            self._inputs = [self.walk.forward.tensor(source) for source in self._sources]
        return self._inputs

    @property
    def outputs(self) -> Sequence[Tensor]:
        """The tensors that the node computes."""
        return [Tensor(self.g, self.name, port, dtype) for port, dtype in enumerate(self.output_types)]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, shared by key among nodes of one device and one loop or branch."""
        shared = self.walk.shared
        if shared is None:
            return make()
        full_key = key, self.walk.graph.requested_device(self.node)
        if full_key not in shared:
            shared[full_key] = make()
        first: T = shared[full_key]
        return first

    def next_number(self, attr: str, value: bytes) -> int:
        """One more than there are nodes whose attr has that value; those that rules have asked for before count too."""
        return self.walk.forward.next_number(attr, value)

    def wants(self, port: int) -> bool:
        """Whether an x leads to that input."""
        return self.walk.is_between(self._sources[port])

    def input_sizes(self, port: int) -> GivenSizes | None:
        """The sizes of an input as far as they are known."""
        return self.walk.forward.sizes.of(self._sources[port])

    def output_sizes(self, port: int) -> GivenSizes | None:
        """The sizes of an output as far as they are known."""
        return self.walk.forward.sizes.of((self.node, port))

    def constant_input(self, port: int) -> Array | None:
        """The value of an input that is a Const, else None."""
        constant = self.walk.forward.constant(self._sources[port])
        return None if constant is None else constant[0]


class Backward:
    """One backward walk over the nodes of a frame. `flowed[output]` has the gradients of an output so far."""

    def __init__(self, forward: ForwardGraph, loop: DifferentiatedLoop | None = None) -> None:
        """A walk over the nodes outside of all loops, or over those of an iteration of `loop`."""
        self.forward = forward
        self.graph = forward.graph
        self.extension = forward.extension
        self.loop = loop
        self.shared: dict[Hashable, Any] | None = None if loop is not None or forward.has_branches else {}
        """results of `Forward.once` by key; of any type"""
        self.flowed: dict[Output, list[Gradient]] = {}
        self.begun: dict[Output, list[Gradient]] = {}
        """initial gradients of ys without a gradient"""
        self.touched: set[int] = set()
        """nodes that have such a y among their outputs, and floating outputs too"""
        self.filled: set[Output] = set()
        """outputs that have a gradient in any case"""
        self.between: set[int] = set()
        self._known_between: dict[Output, bool] = {}
        self.pending: dict[int, int] = {}
        self.ready: deque[int] = deque()

    def inside(self, loop: DifferentiatedLoop) -> Backward:
        """A walk over an iteration of a loop."""
        return Backward(self.forward, loop)

    def fill(self, ys: Sequence[Output], outputs: Iterable[Output]) -> None:
        """Gives these outputs gradients of zeros, where they lead to no y; called before `start`."""
        between = self.forward.between(ys)
        for output in outputs:
            values = base_type(self.graph.node_properties(output[0]).output_types[output[1]]) in _VALUES
            if values and output[0] not in self.forward.loops.innermost:
                self.filled.add(output)
                if output[0] not in between:
                    self.flowed[output] = [self._zeros(output)]

    def _zeros(self, output: Output) -> Tensor:
        self.extension.move_to(self.graph.requested_device(output[0]), "gradients")
        return self.extension.op("ZerosLike", self.forward.tensor(output))[0]

    def start(self, ys: Sequence[Output], grad_ys: Sequence[str | None]) -> None:
        """Sets the initial gradients of the ys: `grad_ys`, or ones."""
        if len(grad_ys) != len(ys):
            raise InvalidArgumentError(f"{len(ys)} ys but {len(grad_ys)} grad_ys; give None for ones")
        starts = []
        for output, grad_y in zip(ys, grad_ys, strict=True):
            y = self.forward.tensor(output)
            self.extension.move_to(self.graph.requested_device(output[0]), "gradients")
            if y.dtype in _OTHER_NUMBERS:
                self._start_inert(output, y, grad_y)
            else:
                starts.append((output, self._first(output, y, grad_y)))
        self.begin(starts)

    def _start_inert(self, output: Output, y: Tensor, grad_y: str | None) -> None:
        """Handles a y without a gradient, an integer one for instance.

        As in TensorFlow it has two effects: an x that is this y gets the initial gradient, and a node that has floating
        outputs too is differentiated as if their gradients were zeros.
        """
        node = output[0]
        if grad_y is not None and y.dtype is DataType.BOOL:
            raise InvalidArgumentError(f"y {y.name!r} is of type bool and takes no grad_ys; give None", node=y.node)
        if grad_y is not None or node in self.forward.wanted:
            self.begun.setdefault(output, []).append(self._first(output, y, grad_y))
        types = map(base_type, self.graph.node_properties(node).output_types)
        if self._is_reached(node) and not _VALUES.isdisjoint(types):
            self.touched.add(node)

    def begin(self, starts: Iterable[tuple[Output, Gradient]]) -> None:
        """Sets the initial gradients of some outputs."""
        for output, gradient in starts:
            self.flowed.setdefault(output, []).append(gradient)
        makers = list(dict.fromkeys([*map(self.forward.maker, self.flowed), *self.touched]))
        self.pending = self._pending([node for node in makers if self._is_reached(node)])
        self.ready.extend(node for node in makers if not self.pending.get(node))

    def _first(self, output: Output, y: Tensor, grad_y: str | None) -> Tensor:
        g = self.extension
        if y.dtype not in _VALUES | _OTHER_NUMBERS and (grad_y is None or y.dtype not in DIFFERENTIABLE):
            raise InvalidArgumentError(
                f"cannot differentiate {y.name!r}: its type {y.dtype.name.lower()} is neither that of numbers nor bool",
                node=y.node,
            )
        if grad_y is None and y.dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
            raise InvalidArgumentError(f"y {y.name!r} is complex, so it is open what to begin with: give grad_ys")
        if grad_y is None:
            return g.op("OnesLike", y, name="grad_ys")[0]
        tensor = self.forward.tensor(_output(self.graph, grad_y))
        if tensor.dtype != y.dtype:
            raise InvalidArgumentError(
                f"grad_ys {grad_y!r} is of type {tensor.dtype.name.lower()}, y {y.name!r} of {y.dtype.name.lower()}"
            )
        wanted = static(self.forward.sizes.of(output))
        actual = static(self.forward.sizes.of(_output(self.graph, grad_y)))
        if wanted is not None and actual is not None and wanted != actual:
            raise InvalidArgumentError(f"grad_ys {grad_y!r} is of shape {actual}, y {y.name!r} of {wanted}")
        return tensor

    def _pending(self, queue: list[int]) -> dict[int, int]:
        """Per node between xs and ys: the number of consumers between whose rules have to run first."""
        counts: dict[int, int] = {}
        between = self.between = set(queue)
        self._known_between.clear()
        for node in queue:  # grows
            for source in self.forward.sources(node):
                src = self.forward.maker(source)
                if source[0] in self.forward.reached and self.forward.carries(*source):
                    counts[src] = counts.get(src, 0) + 1
                    if src not in between:
                        between.add(src)
                        queue.append(src)
        return counts

    def _is_reached(self, node: int) -> bool:
        return node in self.forward.reached or node in self.forward.loops.of_condition

    def is_between(self, source: Output) -> bool:
        """Whether an output is reached from an x and leads to a y."""
        known = self._known_between.get(source)
        if known is None:
            forward = self.forward
            known = source[0] in forward.reached and forward.carries(*source)
            known = self._known_between[source] = known and forward.maker(source) in self.between
        return known

    def run(self) -> None:
        """Runs the rules of nodes between xs and ys until none is left."""
        stop, wanted = self.forward.stop, self.forward.wanted
        while self.ready:
            node = self.ready.popleft()
            sources = self.forward.sources(node)
            into: Gradients = [None] * len(sources)
            goes_on = node in self.between and node not in stop and bool(sources)
            if goes_on and (node not in wanted or any(map(self.is_between, sources))):
                into = self._undo(node)
            for source, gradient in zip(sources, into, strict=True):
                self._flow(source, gradient)

    def _flow(self, source: Output, gradient: Gradient) -> None:
        if gradient is not None:
            self.flowed.setdefault(source, []).append(gradient)
        if self.is_between(source):
            node = self.forward.maker(source)
            self.pending[node] -= 1
            if not self.pending[node]:
                self.ready.append(node)

    def _undo(self, node: int) -> Gradients:
        """The gradients of the inputs of a node, or of a loop."""
        loop = self.forward.loops.of_condition.get(node)
        if loop is not None:
            self.extension.move_to(self.graph.requested_device(node), f"gradients/{loop.name}_grad")
            return undo_loop(self, loop)
        if self.loop is not None and self.forward.loops.is_guard(self.loop, node):
            return [self.total((node, 1)), None]
        properties = self.graph.node_properties(node)
        self.extension.move_to(self.graph.requested_device(node), "gradients")
        into = [self.total((node, port)) for port in range(len(properties.output_types))]
        nothing = [None] * len(properties.input_types)
        is_empty = all(gradient is None for gradient in into)
        if is_empty and node not in self.touched:
            return nothing
        gradient_call = self.forward.gradient_call(node)
        if gradient_call is not None:
            return self._called(node, gradient_call, into)
        rule = rule_of(properties, self.graph.node_name(node))
        if rule.add is None:
            return nothing
        forward = ForwardNode(self, node)
        self.extension.move_to(self.graph.requested_device(node), f"gradients/{forward.name}_grad")
        fill = is_empty or not rule.takes_none
        return rule.add(
            forward, *[self._as_tensor(forward, port, gradient, fill) for port, gradient in enumerate(into)]
        )

    def _called(self, node: int, function: NameAttrList, into: Sequence[Gradient]) -> Gradients:
        """The gradients from the gradient function that the library names."""
        forward = ForwardNode(self, node)
        grads = [self._as_tensor(forward, port, gradient, fill=True) for port, gradient in enumerate(into)]
        arguments = [forward.outputs[port] if grad is None else grad for port, grad in enumerate(grads)]
        call = self.extension.op(
            "PartitionedCall", [*forward.inputs, *arguments], Tout=result_types(forward.input_types), f=function
        )
        return [tensor if forward.wants(port) else None for port, tensor in enumerate(call)]

    def _as_tensor(self, forward: Forward, port: int, gradient: Gradient, fill: bool) -> Tensor | None:
        """The gradient of an output as a dense tensor; without one, zeros if `fill`, else None."""
        if gradient is not None or not fill:
            return self.dense(gradient)
        if base_type(forward.output_types[port]) not in _VALUES:
            return None
        return self.extension.op("ZerosLike", forward.outputs[port])[0]

    def result(self, x: Output) -> Tensor | None:
        """The summed gradient of an x."""
        self.extension.move_to(self.graph.requested_device(x[0]), "gradients")
        gradient = summed(self.extension, self.begun.get(x)) if x in self.begun else self.total(x)
        return self._zeros(x) if gradient is None and x in self.filled else self.dense(gradient)

    def total(self, output: Output) -> Gradient:
        """The sum of all gradients of an output, in the order in which they were added; None if there are none."""
        return summed(self.extension, self.flowed.get(output))

    def dense(self, gradient: Gradient) -> Tensor | None:
        """A gradient as a tensor of the shape of the tensor that it belongs to."""
        return dense(self.extension, gradient)
