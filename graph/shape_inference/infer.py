"""Infers the shapes of all tensors of a graph, or of all its partitions together, from the shapes of its feeds.

Without assumptions a shape only says what is true in every run. With an assumed size no size stays unknown, and each
kind of assumption is described once in words. Small integer values are followed too, since shapes are computed from
them. The shape of a loop's Merge is what all iterations have in common; with assumptions it is that of the first one.

    fed.py         what is fed, and where           op_shapes.py     the rule of one node
    values.py      small integers and sizes         assumptions.py   assumptions in words
    calls.py       calls of functions
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...errors import InvalidArgumentError, PartitaError
from ..analysis.dims import common_shape
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import merge
from ..dtypes import Array, Shape, numpy_dtype
from ..functions.body import FunctionBody, instantiate_call
from ..graph import Graph
from ..library.calls import called_function
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass, ReadsHandle
from ..tensor_id import parse_tensor_name
from ..validate import check_given_attrs
from .assumptions import Assumptions
from .calls import CallShapes, ShapedCall, Wanted, walk_with_calls
from .calls import Shapes as Shapes
from .fed import FedTensors
from .fed import Feeds as Feeds
from .op_shapes import passes_handle_on, shape_behind, shapes_of, shapes_through_handle
from .values import can_evaluate, evaluate, is_partial, is_small, sizes_value

_LOOP_PASSES = 8  # each further pass makes a size of a loop unknown, so few are needed

Refine = Callable[[str, NodeProperties, Shapes], Shapes]


@dataclass(slots=True)
class InferredShapes:
    """Shapes by joint number (see `JoinedGraph`), one per output, and the assumptions behind them."""

    graph: JoinedGraph
    shapes: list[Shapes]
    values: dict[tuple[int, int], Array]
    assumptions: list[str] = field(default_factory=list)

    def by_name(self) -> dict[str, Shapes]:
        """Shapes by node name."""
        return dict(zip(self.graph.names, self.shapes, strict=True))


def infer_shapes(graph: Graph, feeds: Feeds | None = None, refine: Refine | None = None) -> dict[str, Shapes]:
    """Node name -> one shape per output; in a shape None is an unknown size, and None is a shape of unknown rank.

    `feeds` maps tensor names to shapes (or arrays) that replace what the graph computes there; `refine` gets the
    properties, name and shapes of every node and returns its shapes. Raises InvalidArgumentError, naming the node,
    where shapes contradict an op, and for a feed of an unknown node.
    """
    return infer_joined(JoinedGraph({"": graph}), feeds, refine=refine).by_name()


def infer_joined(
    graph: JoinedGraph,
    feeds: Feeds | None = None,
    *,
    assumed_size: int | None = None,
    refine: Refine | None = None,
) -> InferredShapes:
    """Shapes of all nodes of joined graphs; `feeds` and `refine` as in `infer_shapes`.

    With `assumed_size` no size stays unknown: an unknown size becomes that number, an unknown shape becomes that of the
    op's first input, or a scalar if there is none, and a feed of an unknown node is listed among the assumptions.
    Raises InvalidArgumentError as `infer_shapes`.
    """
    inference = _Inference(graph, feeds or {}, assumed_size, refine)
    walk_with_calls(inference, lambda call: _Inference.of_call(call, inference.called))
    values = {output: value for output, value in inference.values.items() if not is_partial(value)}
    return InferredShapes(graph, inference.shapes, values, inference.assumptions.in_words())


class _Inference:
    """One walk in topological order, repeated until the shapes of loops no longer change."""

    def __init__(
        self, graph: JoinedGraph, feeds: Feeds, assumed_size: int | None = None, refine: Refine | None = None
    ) -> None:
        self.graph = graph
        self.inputs = list(map(graph.inputs_of, range(len(graph))))
        self.refine = refine
        self.inside: frozenset[str] = frozenset()
        self.called: CallShapes = {}  # shared by all nested walks
        self.assumptions = Assumptions(assumed_size)
        self.shapes: list[Shapes] = [()] * len(graph)
        self.values: dict[tuple[int, int], Array] = {}
        self.handles: dict[int, Shape] = {}  # node -> shape of the variable, or array element, its handle stands for
        self._known: dict[tuple[int, Shapes], Shapes] = {}
        self._closed: set[Shapes] = set()  # shapes without unknown sizes
        self.tensors = FedTensors(graph)
        self.promised = self.tensors.promised
        self.fed, unused = self.tensors.by_node(feeds)
        self._note_unused(unused)

    def _note_unused(self, feeds: Sequence[str]) -> None:
        """Notes feeds of unknown nodes; InvalidArgumentError if nothing may be assumed."""
        if feeds and self.assumptions.size is None:
            node = parse_tensor_name(feeds[0]).node
            raise InvalidArgumentError(f"feed {feeds[0]!r}: the graph has no node {node!r}; check the name")
        self.assumptions.unused_feeds += feeds

    @classmethod
    def of_call(cls, call: ShapedCall, called: CallShapes) -> _Inference:
        """The walk of a function's body."""
        arguments = call.body.arguments
        feeds = {argument.name: shape for argument, shape in zip(arguments, call.arguments, strict=True)}
        walk = cls(JoinedGraph({"": call.body.graph}), feeds)
        walk.inside, walk.called = call.inside, called
        if call.handles:
            numbers = {name: number for number, name in enumerate(walk.graph.names)}
            walk.handles = {numbers[arguments[index].name]: shape for index, shape in call.handles}
        return walk

    def results(self, body: FunctionBody) -> Shapes:
        """Shapes of the results of a body whose walk is done."""
        numbers = {name: number for number, name in enumerate(self.graph.names)}
        return tuple(self._of(self.inputs[numbers[result.name]][0]) for result in body.results)

    def run(self) -> Iterator[ShapedCall]:
        """Infers all shapes; yields the calls whose result shapes it needs before it can go on."""
        self._check_attrs()
        order = self.graph.order().tolist()
        merges = [n for n in order if self.graph.node_class(n) is NodeClass.MERGE]
        for _ in range(_LOOP_PASSES):
            before = [self.shapes[n] for n in merges]
            for n in order:
                try:
                    self._visit(n)
                except Wanted as wanted:
                    yield wanted.call
                    self._visit(n)  # a node calls one function, so this time it succeeds
            closed = any(self.graph.is_back_edge(src, n) for n in merges for src, _ in self.inputs[n])
            if not closed or self.assumptions.size is not None or before == [self.shapes[n] for n in merges]:
                break

    def _check_attrs(self) -> None:
        """Raises InvalidArgumentError for an attr that does not fit its op's declaration; rules rely on that."""
        checked: set[NodeProperties] = set()
        for n, properties in enumerate(self.graph.properties):
            if properties not in checked:
                checked.add(properties)
                check_given_attrs(self.graph.names[n], properties.op_def, properties.attrs)

    def _visit(self, n: int) -> None:
        shapes = self._infer(n) if n not in self.promised else (self.promised[n][1],)
        fed = self.fed.get(n)
        if fed is not None:
            shapes = self._with_feeds(n, list(shapes), fed)
        elif self.assumptions.size is not None and self.graph.op(n) == "PlaceholderWithDefault":
            # Nothing is fed, so the output is the default, whose shape is better than an assumption.
            shapes = (merge(shapes[0], self._of(self.inputs[n][0])),)
        if self.refine is not None:
            shapes = self.refine(self.graph.names[n], self.graph.properties[n], shapes)
        if self.assumptions.size is not None and shapes not in self._closed:
            if any(shape is None or None in shape for shape in shapes):
                shapes = self._closed_shapes(n, shapes)
            self._closed.add(shapes)
        self.shapes[n] = shapes

    def _closed_shapes(self, n: int, shapes: Shapes) -> Shapes:
        """The shapes of a node with all unknown sizes assumed."""
        sources = self.inputs[n]
        first = self._of(sources[0]) if sources else ()
        return tuple(self.assumptions.closed(self.graph.op(n), shape, first) for shape in shapes)

    def _with_feeds(self, n: int, shapes: list[Shape], fed: Mapping[int, Shape | Array]) -> Shapes:
        for output, feed in fed.items():
            if not 0 <= output < len(shapes):
                raise InvalidArgumentError(
                    f"feed of output {output}: the node has {len(shapes)}; check the number",
                    node=self.graph.names[n],
                    op=self.graph.op(n),
                )
            self.values.pop((n, output), None)
            if feed is None or isinstance(feed, tuple):
                shapes[output] = self.tensors.merged(n, shapes[output], feed)
                continue
            value = np.asarray(feed)
            shapes[output] = self.tensors.merged(n, shapes[output], value.shape)
            if is_small(value):
                self.values[n, output] = value
        return tuple(shapes)

    def _infer(self, n: int) -> Shapes:
        graph = self.graph
        send = int(graph.sender[n])
        if send >= 0:
            source = self.inputs[send][0]
            self._pass_on(source, n)
            return (self._of(source),)
        if graph.node_class(n) is NodeClass.MERGE:
            return self._merge(n)
        inputs = tuple(map(self._of, self.inputs[n]))
        if can_evaluate(graph.op(n)):
            self._follow_values(n, inputs)
        if self.handles or graph.properties[n].op_def.record.handle_shape_attr:
            variable = self._variable_shapes(n, inputs)
            if variable is not None:
                return variable
        return self._by_op(n, inputs)

    def _of(self, source: tuple[int, int]) -> Shape:
        shapes = self.shapes[source[0]]
        return shapes[source[1]] if source[1] < len(shapes) else None

    def _pass_on(self, source: tuple[int, int], n: int) -> None:
        """Gives output 0 of `n` the value, and the resource shape, of another output."""
        if source in self.values:
            self.values[n, 0] = self.values[source]
        if source[0] in self.handles:
            self.handles[n] = self.handles[source[0]]

    def _merge(self, n: int) -> Shapes:
        """The common shape of the inputs known so far: in the first pass a loop's Merge knows only its Enter."""
        sources = self.inputs[n]
        known = [self._of(source) for source in sources if self.shapes[source[0]]]
        if self.assumptions.size is not None:
            known = known[:1]
        elif self.shapes[n]:
            known.append(self.shapes[n][0])  # a size that an earlier pass made unknown stays unknown
        for source in sources[:1]:
            if source[0] in self.handles:
                self.handles[n] = self.handles[source[0]]
        return (common_shape(known) if known else None, ())

    def _follow_values(self, n: int, inputs: Shapes) -> None:
        sources = self.inputs[n]
        properties = self.graph.properties[n]
        values = [self.values.get(source) for source in sources]
        for output, value in enumerate(evaluate(properties, inputs, values)):
            if value is None:
                self.values.pop((n, output), None)
            else:
                self.values[n, output] = value

    def _variable_shapes(self, n: int, inputs: Shapes) -> Shapes | None:
        """Shapes of reads through resource handles, which the handle determines; None for other nodes."""
        properties, sources = self.graph.properties[n], self.inputs[n]
        behind = shape_behind(properties)
        if behind is not None:
            self.handles[n] = behind[0]
            return None
        if not sources or sources[0][0] not in self.handles:
            return None
        shape = self.handles[sources[0][0]]
        if properties.op_def.record.reads_handle is ReadsHandle.SHAPE and shape is not None:
            self.values[n, 0] = sizes_value(shape, numpy_dtype(properties.output_types[0]))
        shapes = shapes_through_handle(properties, inputs, shape)
        if shapes is None and passes_handle_on(properties):
            self.handles[n] = shape
        return shapes

    def _by_op(self, n: int, inputs: Shapes) -> Shapes:
        graph, properties = self.graph, self.graph.properties[n]
        values = {i: self.values[s] for i, s in enumerate(self.inputs[n]) if s in self.values}
        if properties.op == "Range":
            values |= self._constant_inputs(n)
        key = id(properties), inputs
        if not values and key in self._known:
            return self._known[key]
        try:
            called = self._called(n, inputs)
            if called is not None:
                return called  # its results also depend on the shapes behind handles
            shapes = shapes_of(properties, inputs, values)
        except PartitaError as error:
            if not self.assumptions:
                raise error.located(node=graph.names[n], op=graph.op(n)) from None
            self.assumptions.contradict(graph.op(n))
            shapes = (None,) * len(properties.output_types)
        if not values:
            self._known[key] = shapes
        return shapes

    def _called(self, n: int, inputs: Shapes) -> Shapes | None:
        """Shapes of the results of the function that a node calls; None for other nodes, and for a recursive call."""
        library = self.graph.functions[self.graph.place[n]]
        function = called_function(self.graph.properties[n], library) if library else None
        if function is None or function.name not in library or function.name in self.inside:
            return None
        body = instantiate_call(library, function)
        if len(body.arguments) != len(inputs) or len(body.results) != len(self.graph.properties[n].output_types):
            return None
        handles = [(index, source) for index, (source, _) in enumerate(self.inputs[n]) if source in self.handles]
        recursive = library.may_call_itself(function.name)
        call = ShapedCall(
            body,
            inputs,
            tuple((index, self.handles[source]) for index, source in handles),
            self.inside | {function.name} if recursive else frozenset(),
        )
        result = self.called.get(call)
        if result is None:
            raise Wanted(call)
        if isinstance(result, PartitaError):
            raise result
        return result

    def _constant_inputs(self, n: int) -> dict[int, Array]:
        """Inputs that are constants of any type; beyond constants only integers are followed."""
        sources = ((i, self.graph.properties[s]) for i, (s, _) in enumerate(self.inputs[n]))
        return {i: source.attrs["value"] for i, source in sources if source.op == "Const"}
