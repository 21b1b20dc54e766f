"""Scalars of a graph that are known before a run, as functions of a loop's iteration (see `counters`).

Values are followed backwards from where they are used, on demand: through identities, casts, Send and Recv, arithmetic,
comparisons and calls of functions. Leaves are constants, and values that shape inference knows, such as the number of
rows of a tensor. The value of a list is its length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from math import isfinite
from typing import NamedTuple
from weakref import WeakKeyDictionary

from ...errors import PartitaError
from ..dtypes import Array
from ..edge_ends import Output
from ..functions.body import instantiate_call
from ..library.calls import arguments_of_its_own, called_function
from ..library.function_library import FunctionLibrary
from ..ops.record import LOOPS, Holding, NodeClass
from ..protos import NameAttrList
from .counters import ALWAYS, COUNTERS, NEVER, Number, Value
from .joined import JoinedGraph

ValuesByOutput = Mapping[Output, Array]

_PASSING = (
    NodeClass.IDENTITY,
    NodeClass.ENTER,
    NodeClass.NEXT_ITERATION,
    NodeClass.LOOP_COND,
    NodeClass.SWITCH,
)
_PASSING_OPS = frozenset({"EnsureShape", "Reshape", "Squeeze", "ExpandDims", "PlaceholderWithDefault"})
_MAX_DEPTH = 200  # values behind each other: beyond that a value counts as unknown


class KnownValues:
    """The values of one graph.

    `bound` has values of outputs that are not to be followed further, None for unknown ones. `of_exit` gives the
    value of an Exit node by its joint number, `of_pop` that of the element which a node takes out of a list or stack.
    """

    def __init__(
        self,
        graph: JoinedGraph,
        values: ValuesByOutput,
        bound: Mapping[Output, Value],
        of_exit: Callable[[int], Value] = lambda _: None,
        depth: int = 0,
        of_pop: Callable[[int], Value] = lambda _: None,
    ) -> None:
        self.graph = graph
        self.values = values
        self.of_exit = of_exit
        self.of_pop = of_pop
        self.depth = depth
        self.known: dict[Output, Value] = dict(bound)

    def value(self, source: Output) -> Value:
        """The value of an output, None if it is unknown."""
        if source not in self.known:
            if self.depth > _MAX_DEPTH:
                return None
            self.known[source] = None  # what is asked for inside is part of a cycle
            self.depth += 1
            self.known[source] = self._evaluated(*source)
            self.depth -= 1
        return self.known[source]

    def input(self, n: int, port: int = 0) -> Value:
        """The value of a data input of a node."""
        sources = self.graph.inputs_of(n)
        return self.value(sources[port]) if port < len(sources) else None

    def _evaluated(self, n: int, output: int) -> Value:
        graph, properties = self.graph, self.graph.properties[n]
        if (n, output) in self.values:
            return scalar(self.values[n, output])
        if graph.sender[n] >= 0:
            return self.input(int(graph.sender[n]))
        record, op = properties.op_def.record, properties.op
        if record.node_class is NodeClass.CONSTANT:
            return scalar(properties.attrs["value"])
        if record.node_class is NodeClass.EXIT:
            return self.of_exit(n)
        if record.node_class in _PASSING or record.passes_on or op in _PASSING_OPS:
            return self.input(n)
        if record.regroups:
            return self.input(n, output)
        if record.holding is Holding.TAKES_LAST and output == len(properties.output_types) - 1:
            return self.of_pop(n)
        rule = COUNTERS.get(op)
        if rule is not None:
            return rule(lambda port: self.input(n, port), properties.output_types[0])
        if record.calls in LOOPS:
            return self._of_loop(n, output)
        return self._of_call(n, output)

    def _of_loop(self, n: int, output: int) -> Value:
        """The value that a While or For leaves."""
        from .loop_values import loop_values  # which asks for values in turn

        library, properties = self.graph.functions[int(self.graph.place[n])], self.graph.properties[n]
        starts = [self.input(n, port) for port in range(len(self.graph.inputs_of(n)))]
        if any(start is not None and start.at(0) != start for start in starts):
            return None
        try:
            found = loop_values(properties, library, starts)
        except PartitaError:
            return None  # the run, or the simulation, reports the error
        value = found.variables[output + arguments_of_its_own(properties.op_def.record.calls)]
        return None if found.count is None or value is None else value.at(found.count)

    def _of_call(self, n: int, output: int) -> Value:
        """The value of a result of a called function."""
        graph = self.graph
        library = graph.functions[graph.place[n]]
        function = called_function(graph.properties[n], library) if library else None
        if function is None or function.name not in library:
            return None
        called = _called(library, function)
        if called is None or len(called.arguments) != len(graph.inputs_of(n)) or output >= len(called.results):
            return None
        ports = {number: port for port, number in enumerate(called.arguments)}
        inner = _InCall(called.graph, lambda number: self.input(n, ports[number]), frozenset(ports), self.depth)
        return inner.input(called.results[output])


class _InCall(KnownValues):
    """The values of a function's body; those of its arguments are asked for when they matter."""

    def __init__(
        self, graph: JoinedGraph, argument: Callable[[int], Value], arguments: frozenset[int], depth: int
    ) -> None:
        super().__init__(graph, {}, {}, depth=depth)
        self._argument, self._arguments = argument, arguments

    def _evaluated(self, n: int, output: int) -> Value:
        return self._argument(n) if n in self._arguments else super()._evaluated(n, output)


class _Called(NamedTuple):
    """The body of a function: its graph, and the joint numbers of its arguments and results."""

    graph: JoinedGraph
    arguments: tuple[int, ...]
    results: tuple[int, ...]


_BODIES: WeakKeyDictionary[FunctionLibrary, dict[bytes, _Called | None]] = WeakKeyDictionary()


def _called(library: FunctionLibrary, function: NameAttrList) -> _Called | None:
    """The body of a function of a library, made once; None for one that cannot be made: the run reports the error."""
    bodies, key = _BODIES.setdefault(library, {}), function.SerializeToString(deterministic=True)
    if key not in bodies:
        bodies[key] = None
        with suppress(PartitaError):
            body = instantiate_call(library, function)
            graph = JoinedGraph({"": body.graph})
            numbers = {name: number for number, name in enumerate(graph.names)}
            ends = ([numbers[node.name] for node in nodes] for nodes in (body.arguments, body.results))
            bodies[key] = _Called(graph, *map(tuple, ends))
    return bodies[key]


def scalar(value: Array) -> Value:
    """A tensor of one element as a value; None for any other, and for elements that are no finite number."""
    if value.size != 1:
        return None
    element = value.reshape(-1)[0].item() if hasattr(value.reshape(-1)[0], "item") else None
    if isinstance(element, bool):
        return ALWAYS if element else NEVER
    if isinstance(element, int):
        return Number(element)
    if isinstance(element, float) and isfinite(element):
        return Number(int(element) if element.is_integer() else Fraction(element))
    return None
