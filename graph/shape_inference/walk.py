"""The walk of one graph in topological order, repeated until the shapes of loops no longer change.

What a node outputs depends on its kind and on the facts of its inputs (see `tensor_facts.py`). Each distinct
combination is a *case*, which is computed once. So most nodes take one look-up:

    node             key: kind, facts of inputs    case
    a = Neg(x)       3, 1                          0     computed by the rule of Neg
    b = Neg(a)       3, 1                          0
    c = Add(a, b)    4, 1, 1                       1     computed by the rule of Add

Nodes that are fed, loops' merges and calls of functions are visited one by one. A receive has the facts of what is
sent; all receives are of one kind. Sends have no outputs and are skipped: they are of case 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

import numpy as np

from ...errors import InvalidArgumentError, PartitaError
from ..analysis.dims import common_shape
from ..analysis.joined import JoinedGraph
from ..analysis.joined_bodies import joined_body
from ..analysis.shape_functions import merge
from ..arrays import Numbers, owners
from ..columns import Ids
from ..dtypes import Shapes
from ..functions.body import FunctionBody, instantiate_call
from ..library.calls import arguments_of_its_own, called_by, called_function
from ..library.function_library import FunctionLibrary
from ..ops.properties import NodeProperties
from ..ops.record import SENDS, Calls, NodeClass
from ..ops.registry import PRODUCER
from ..protos import NameAttrList
from ..tensor_id import parse_tensor_name
from .calls import CallShapes, ShapedCall, TensorShapes, Wanted
from .cases import Cases
from .constant_inputs import NOT_VISITED, ConstantInputs
from .fed import FedShapes, FedTensors
from .holders import Holders
from .inferred import InferredShapes
from .kind_attrs import check_attrs_of
from .outcomes import (
    NOTHING,
    InferenceOutcome,
    common_tensors,
    completed_behind,
    handle_of_any,
    outcome_of,
    passed_on,
    with_promised,
)
from .plain_kinds import PlainKinds
from .tensor_facts import UNKNOWN, TensorFacts
from .tensor_lists import is_nested

_LOOP_PASSES = 8  # each further pass makes a size of a loop unknown, so few are needed
_CHUNK = 1 << 13  # nodes whose columns are lists of Python integers at a time, about 300 bytes a node

Refine = Callable[[str, NodeProperties, Shapes], Shapes]


class VisitKind(IntEnum):
    """How a node is visited."""

    LOOK_UP_ONE = 0  # by its case; it has one output
    LOOK_UP = 1
    ALONE = 2  # its outcome depends on more than its kind and the facts of its inputs


class GraphWalk:
    """The inference of one graph, or of the partitions of one.

    After `run`, `fact_of[out_start[n] + i]` is the number of the fact of output `i` of node `n`, and `case_of[n]` the
    number of its case.
    """

    def __init__(
        self,
        graph: JoinedGraph,
        feeds: FedShapes,
        *,
        assumed_size: int | None = None,
        is_step: bool = False,
        refine: Refine | None = None,
    ) -> None:
        """Raises InvalidArgumentError for a feed of an unknown node, unless a step is inferred."""
        self.graph = graph
        self.refine = refine
        self.assumed_size = assumed_size
        self.is_step = is_step
        self.producer = next(iter(graph.producers), 0) or PRODUCER  # a step of no partitions has none
        self.inside: frozenset[str] = frozenset()
        self.called = CallShapes()  # shared by all nested walks
        self.facts = TensorFacts()
        self.cases = Cases(self.facts, assumed_size)
        self.case_of: Ids = np.zeros(len(graph), np.int32)
        self.holders = Holders(graph) if is_step else None
        self.tensors = FedTensors(graph)
        self.promised = self.tensors.promised
        self.fed, self.unused_feeds = self.tensors.by_node(feeds)
        if self.unused_feeds and not is_step:
            node = parse_tensor_name(self.unused_feeds[0]).node
            raise InvalidArgumentError(f"feed {self.unused_feeds[0]!r}: the graph has no node {node!r}; check the name")
        self.handles: dict[int, Shapes] = {}  # argument of a function -> the shapes behind the handle that it gets
        self._nested: dict[int, Shapes] = {}  # lists of lists, by merge
        self._has_news = False
        self._known: dict[tuple[int, ...], int] = {}
        num_outputs = np.array([len(kind.output_types) for kind in graph.kinds], np.int64)[graph.kind_of]
        self.out_start: Numbers = np.concatenate([[0], np.cumsum(num_outputs)])
        self.fact_of = [NOT_VISITED] * int(self.out_start[-1])
        self.fact_of.append(UNKNOWN)  # for edges that leave an output which does not exist
        self.constants = ConstantInputs(graph, self.out_start, self.fact_of, self.facts)
        self._plain = PlainKinds(graph, self.facts, self.constants)
        noted = self.holders.nodes() if self.holders is not None else ()
        self._noted = {*self.fed, *self.promised, *noted}  # nodes of which more is known than their op says
        self._join_inputs(num_outputs)
        self._ways = self._choose_ways(num_outputs)

    def _join_inputs(self, num_outputs: Numbers) -> None:
        """The columns of the walk: kinds, and where in `fact_of` inputs are, for a receive what is sent to it."""
        graph = self.graph
        src, output = graph.input_src, graph.input_output
        exists = (output >= 0) & (output < num_outputs[src])
        sources = np.where(exists, self.out_start[src] + output, self.out_start[-1])
        counts = np.diff(graph.input_start)
        receives = np.flatnonzero(graph.sender >= 0)
        sent = sources[graph.input_start[graph.sender[receives]]]
        counts[receives] = 1
        self._sources = np.insert(sources, graph.input_start[receives], sent)
        self._starts: Numbers = np.concatenate([[0], np.cumsum(counts)])
        self._kind_of = graph.kind_of.copy()
        self._kind_of[receives] = self._receive = len(graph.kinds)

    def _choose_ways(self, num_outputs: Numbers) -> Ids:
        graph = self.graph
        alone = [
            node_class is NodeClass.MERGE
            or kind.op_def.record.asks_values
            or (op == "PlaceholderWithDefault" and self.is_step)
            or self._plain.may_call(kind)
            or self.refine is not None
            for op, node_class, kind in zip(graph.ops, graph.classes, graph.kinds, strict=True)
        ]
        ways = np.where(num_outputs == 1, VisitKind.LOOK_UP_ONE, VisitKind.LOOK_UP).astype(np.int32)
        ways[np.array([*alone, False], np.bool_)[self._kind_of]] = VisitKind.ALONE
        ways[[*self.fed, *self.promised, *(self.holders.nodes() if self.holders else ())]] = VisitKind.ALONE
        return ways

    @classmethod
    def of_call(cls, call: ShapedCall, caller: GraphWalk) -> GraphWalk:
        """The walk of a function's body; all walks share the shapes of calls."""
        arguments = call.body.arguments
        feeds = {argument.name: shape for argument, shape in zip(arguments, call.arguments, strict=True)}
        walk = cls(joined_body(call.body), feeds, is_step=caller.is_step)
        walk.inside, walk.called, walk.producer = call.inside, caller.called, caller.producer
        if call.handles:
            numbers = {name: number for number, name in enumerate(walk.graph.names)}
            walk.handles = {numbers[arguments[index].name]: shapes for index, shapes in call.handles}
        return walk

    def inferred(self) -> InferredShapes:
        """The shapes of all nodes, once the walk is done."""
        fact_of = np.array(self.fact_of[:-1], np.int32)
        columns = self.graph, self.case_of, self.cases, self.facts, fact_of, self.out_start
        return InferredShapes(*columns, self.unused_feeds, self.called)

    def results(self, body: FunctionBody) -> TensorShapes:
        """What is known of the results of a body whose walk is done."""
        numbers = {name: number for number, name in enumerate(self.graph.names)}
        facts = [self.fact_of[self._sources[self._starts[numbers[result.name]]]] for result in body.results]
        return self._read([UNKNOWN if fact == NOT_VISITED else fact for fact in facts])

    def run(self) -> Iterator[ShapedCall]:
        """Infers all shapes; yields the calls whose result shapes it needs before it can go on."""
        check_attrs_of(self.graph)
        graph = self.graph
        order = graph.order()
        if self.refine is None:
            order = order[~graph.of_class(*SENDS)[order]]
        yield from self._until_stable(order)
        for _ in range(_LOOP_PASSES):
            if self.holders is None or not self.holders.note(self._shapes_read):
                break
            self._forget()
            yield from self._until_stable(order)

    def _forget(self) -> None:
        """The next pass finds sizes anew: more is known of what is in stacks, or in lists of lists."""
        self.fact_of[:-1] = [NOT_VISITED] * (len(self.fact_of) - 1)

    def _shapes_read(self, n: int) -> Shapes:
        sources = self._sources[self._starts[n] : self._starts[n + 1]].tolist()
        return tuple([self.facts.shapes[self.fact_of[source]] for source in sources])

    def _until_stable(self, order: Ids) -> Iterator[ShapedCall]:
        """Walks until the shapes of merges no longer change."""
        graph = self.graph
        merges = self.out_start[:-1][graph.of_class(NodeClass.MERGE)].tolist()
        has_loops = graph.closes_loop(graph.input_src, owners(np.diff(graph.input_start))).any()
        for _ in range(_LOOP_PASSES if has_loops and self.assumed_size is None else 1):
            before = [self.fact_of[output] for output in merges]
            self._has_news = False
            yield from self._pass(order)
            if self._has_news:
                self._forget()
            elif before == [self.fact_of[output] for output in merges]:
                break

    def _pass(self, order: Ids) -> Iterator[ShapedCall]:
        for begin in range(0, len(order), _CHUNK):
            yield from self._walk(order[begin : begin + _CHUNK])

    def _walk(self, nodes: Ids) -> Iterator[ShapedCall]:
        """Visits nodes in this order."""
        starts = self._starts[nodes]
        counts = self._starts[nodes + 1] - starts
        ends = np.cumsum(counts)
        sources = self._sources[np.repeat(starts - ends + counts, counts) + np.arange(counts.sum())].tolist()
        columns = (nodes, self._kind_of[nodes], self._ways[nodes], ends, self.out_start[nodes])
        known, fact_of, outputs, cases = self._known, self.fact_of, self.cases.outputs, list[int]()
        begin = 0
        key: tuple[int, ...]
        for n, kind, way, end, out in zip(*(column.tolist() for column in columns), strict=True):
            if end - begin == 1:
                key = kind, fact_of[sources[begin]]
            elif end - begin == 2:
                key = kind, fact_of[sources[begin]], fact_of[sources[begin + 1]]
            else:
                key = (kind, *[fact_of[source] for source in sources[begin:end]])
            begin = end
            case = known.get(key) if way < _ALONE else None
            if case is None:
                while case is None:
                    try:
                        case = self._visit(n, key)
                    except Wanted as wanted:  # a node may call several functions, or one with several shapes
                        yield wanted.call
                if way < _ALONE:
                    known[key] = case
            cases.append(case)
            if not way:
                fact_of[out] = outputs[case][0]
            else:
                for output, fact in enumerate(outputs[case], out):
                    fact_of[output] = fact
        self.case_of[nodes] = cases

    def _visit(self, n: int, key: tuple[int, ...]) -> int:
        """The case of a node, which may be new."""
        kind, inputs = key[0], key[1:]
        if self.is_step and self.refine is None and n not in self._noted:
            shapes = self._plain.known_shapes(n, kind, inputs, self.producer)
            if shapes is not None:
                return self.cases.plain(kind, inputs, shapes)
        if self.holders is not None and n in self.holders.known:
            outcome = InferenceOutcome(self.holders.known[n])
        elif n in self.promised:
            outcome = InferenceOutcome((self.promised[n][1],))
        else:
            outcome = self._outcome(n, kind, inputs)
        properties = self.graph.kinds[int(self.graph.kind_of[n])]
        if self.is_step:
            outcome.complete_in_a_step(properties)
        if n in self.handles:
            outcome.behind = (self.handles[n],)
        elif self.holders is not None and n in self.holders.behind:
            outcome.behind = completed_behind(outcome, self.holders.behind[n])
        if n in self.fed:
            self.tensors.feed(n, outcome, self.fed[n])
        elif self.is_step and properties.op == "PlaceholderWithDefault":
            # Nothing is fed, so the output is the default.
            outcome.shapes = (merge(outcome.shapes[0], self.facts.shapes[inputs[0]]),)
        outcome.shapes = self._refined(n, properties, outcome.shapes)
        return self.cases.number(kind, inputs, outcome, len(properties.output_types))

    def _refined(self, n: int, properties: NodeProperties, shapes: Shapes) -> Shapes:
        return shapes if self.refine is None else self.refine(self.graph.names[n], properties, shapes)

    def _outcome(self, n: int, kind: int, inputs: Sequence[int]) -> InferenceOutcome:
        if kind == self._receive:
            return passed_on(self.facts, inputs[0])
        if self.graph.classes[kind] is NodeClass.MERGE:
            return self._merge(n, inputs)
        properties, plain = self.graph.kinds[kind], self._plain.function(kind)
        try:
            called = self._called(n, properties, inputs) if plain is None else None
            if called is not None:
                return called
            if plain is not None:
                return InferenceOutcome(self._plain.shapes(n, kind, inputs, self.producer))
            constants = self.constants.of(n) if properties.op_def.record.asks_values else NOTHING
            return outcome_of(properties, inputs, self.facts, constants, is_step=self.is_step, producer=self.producer)
        except PartitaError as error:
            if not self.cases.assumed:
                raise error.located(node=self.graph.names[n], op=properties.op) from None
            return InferenceOutcome((None,) * len(properties.output_types), contradicts=True)

    def _merge(self, n: int, inputs: Sequence[int]) -> InferenceOutcome:
        """The common shape of the inputs known so far: in the first pass a loop's Merge knows only its Enter."""
        facts = self.facts
        visited = [fact for fact in inputs if fact != NOT_VISITED]
        known = [facts.shapes[fact] for fact in visited]
        before = self.fact_of[self.out_start[n]]
        if self.assumed_size is not None:
            known = known[:1]
        elif before != NOT_VISITED:
            known.append(facts.shapes[before])  # a size that an earlier pass made unknown stays unknown
        dtype = self.graph.kinds[int(self.graph.kind_of[n])].output_types[0]
        lists = [facts.behind[fact] for fact in visited]
        if n in self._nested:
            lists.append(self._nested[n])
        behind = handle_of_any(dtype, lists) if visited else None
        if behind is not None and is_nested(behind) and self._nested.get(n) != behind:
            self._nested[n], self._has_news = behind, self.is_step
        return InferenceOutcome((common_shape(known) if known else None, ()), behind=(behind,))

    def _called(self, n: int, properties: NodeProperties, inputs: Sequence[int]) -> InferenceOutcome | None:
        """The results of the functions that a node calls; None for other nodes, and for a recursive call."""
        library = self.graph.functions[int(self.graph.place[n])]
        if not library:
            return None
        match properties.op_def.record.calls:
            case Calls.IF | Calls.CASE:
                arguments = self._read(inputs[1:])
                branches = [self._results_of(f, library, properties, arguments) for f in called_by(properties, library)]
                known = [branch for branch in branches if branch is not None]
                return with_promised(properties, common_tensors(properties, known)) if known else None
            case Calls.WHILE | Calls.FOR:
                *_, body = called_by(properties, library)
                num_variables = len(properties.output_types)
                loop = self._loop(body, library, properties, self._read(inputs[len(inputs) - num_variables :]))
                nothing = (None,) * num_variables  # the body is being walked already
                unknown = TensorShapes(nothing, nothing)
                return with_promised(properties, unknown) if loop is None and body.name in library else loop
        function = called_function(properties, library)
        result = None if function is None else self._results_of(function, library, properties, self._read(inputs))
        return None if result is None else InferenceOutcome(result.shapes, behind=result.behind)

    def _loop(
        self, body: NameAttrList, library: FunctionLibrary, properties: NodeProperties, variables: TensorShapes
    ) -> InferenceOutcome | None:
        """The shapes that the variables of a While or For have in every iteration, from those it begins with."""
        first = variables
        numbers = arguments_of_its_own(properties.op_def.record.calls)
        for _ in range(_LOOP_PASSES):
            shapes, behind = ((),) * numbers + variables.shapes, (None,) * numbers + variables.behind
            result = self._results_of(body, library, properties, TensorShapes(shapes, behind))
            if result is None:
                return None
            common = common_tensors(properties, [variables, result])
            if common == variables:
                break
            has_news = any(map(is_nested, filter(None, common.behind))) and common.behind != variables.behind
            variables = common._replace(shapes=first.shapes) if has_news else common
        return with_promised(properties, variables)

    def _read(self, inputs: Sequence[int]) -> TensorShapes:
        shapes, behind = self.facts.shapes, self.facts.behind
        return TensorShapes(tuple([shapes[fact] for fact in inputs]), tuple([behind[fact] for fact in inputs]))

    def _results_of(
        self, function: NameAttrList, library: FunctionLibrary, properties: NodeProperties, arguments: TensorShapes
    ) -> TensorShapes | None:
        """What is known of the results of a function; None for one that is missing, or called inside itself."""
        if function.name not in library or function.name in self.inside:
            return None
        body = instantiate_call(library, function)
        if len(body.arguments) != len(arguments.shapes) or len(body.results) != len(properties.output_types):
            return None
        recursive = library.may_call_itself(function.name)
        call = ShapedCall(
            body,
            arguments.shapes,
            tuple([(index, shapes) for index, shapes in enumerate(arguments.behind) if shapes is not None]),
            self.inside | {function.name} if recursive else frozenset(),
        )
        result = self.called.get(call)
        if result is None:
            raise Wanted(call)
        if isinstance(result, PartitaError):
            raise result
        return result


_ALONE = int(VisitKind.ALONE)
