"""A played step as one graph: a node per row, so that memory is found for it as for a graph without loops and calls.

    rows of the step                  inputs, which other activations give
    3  Enter          of x
    7  Merge          iteration 0     3
    9  Mul            iteration 0     7
    10 NextIteration  iteration 0     9
    12 Merge          iteration 1     10

The nodes of loops pass on what they get, so all of these are one buffer, or two in turns. An argument of a function
is the caller's tensor, and the result of a call that of the function. A constant in a loop is there once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.analysis.joined import JoinedGraph
from ....graph.columns import Ids
from ....graph.library.calls import arguments_of_its_own, inputs_before_arguments
from ....graph.ops.properties import NodeProperties, properties_of
from ....graph.ops.record import Calls, NodeClass
from ....graph.shape_inference.infer import InferredShapes, Shapes
from .runs import CallRun, LoopRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..bodies.body import Body
    from ..memory.tensors import OutputShapes
    from .player import Activation

_Output = tuple[int, int]


def played_shapes(activations: Sequence[Activation]) -> InferredShapes:
    """The shapes of all rows of a step, and their graph, with the columns that memory needs."""
    return _Played(activations).shapes()


class RowColumns(NamedTuple):
    """The rows of one activation: kinds, and the numbers, sources and outputs of their inputs; senders of receives."""

    kinds: Ids
    counts: Ids
    src: Ids
    output: Ids
    sender: Ids


RETURNS_NO_FETCH = properties_of("NoOp", {})
"""stands for the end of a called function, whose results go to its caller"""


def passing_on(node: NodeProperties) -> NodeProperties:
    """Stands for a node whose outputs are the tensors that it gets: an argument, a call, a repeated constant."""
    return _passing_on(tuple(int(dtype) for dtype in node.output_types))


@cache
def _passing_on(types: tuple[int, ...]) -> NodeProperties:
    return (
        properties_of("Identity", {"T": types[0]}) if len(types) == 1 else properties_of("IdentityN", {"T": [*types]})
    )


def graph_of_rows(kinds: list[NodeProperties], names: list[str], activations: Sequence[RowColumns]) -> JoinedGraph:
    """The graph of all rows, with the columns that memory needs."""
    kind_of, counts, src, output, sender = (np.concatenate(column) for column in zip(*activations, strict=True))
    graph = object.__new__(JoinedGraph)
    graph.kinds, graph.kind_of, graph.names = kinds, kind_of, names
    graph.ops = [kind.op for kind in graph.kinds]
    graph.classes = [kind.op_def.record.node_class for kind in graph.kinds]
    graph.input_start = np.concatenate([[0], np.cumsum(counts)])
    graph.input_src, graph.input_output, graph.sender = src, output, sender
    return graph


def shapes_of_rows(graph: JoinedGraph, activations: Sequence[OutputShapes]) -> InferredShapes:
    """The shapes of the outputs of all rows."""
    shapes, distinct = object.__new__(InferredShapes), dict[Shapes, int]()
    shape_of = [
        np.array([distinct.setdefault(own, len(distinct)) for own in each.distinct], np.int32)[each.shape_of]
        for each in activations
    ]
    shapes.graph, shapes.distinct, shapes.shape_of = graph, list(distinct), np.concatenate(shape_of)
    return shapes


class _Template(NamedTuple):
    """The inputs of the nodes of a body: those from nodes of the body, and by position those from elsewhere."""

    counts: Ids
    src: Ids
    output: Ids
    outside: list[tuple[int, int, int]]  # position, joint number of the source, its output


class _Played:
    def __init__(self, activations: Sequence[Activation]) -> None:
        self.activations = activations
        self.kinds: dict[NodeProperties, int] = {}
        self._templates: dict[int, _Template] = {}
        self._all_ends: dict[tuple[int, NodeClass], dict[int, int]] = {}  # by graph
        self._constants: dict[tuple[int, int], int] = {}  # by graph and node: the first row

    def shapes(self) -> InferredShapes:
        """The graph of all rows, and the shapes of their outputs."""
        rows = [self._rows_of(activation) for activation in self.activations]
        names = [name for activation in self.activations for name in activation.body.graph.names]
        graph = graph_of_rows(list(self.kinds), names, rows)
        return shapes_of_rows(graph, [activation.body.shapes for activation in self.activations])

    def _rows_of(self, activation: Activation) -> RowColumns:
        """The rows of an activation."""
        body, base = activation.body, activation.base
        template = self._template(body)
        numbers = np.array([self._number(kind) for kind in body.graph.kinds], np.int32)
        kinds = numbers[body.graph.kind_of]
        src, output = template.src + base, template.output.copy()
        for position, node, port in template.outside:
            src[position], output[position] = self._outside(activation, node), port
        counts = template.counts.copy()
        sender = np.where(body.graph.sender >= 0, body.graph.sender + base, -1)
        if activation is not self.activations[0]:
            kinds[body.graph.of_class(NodeClass.RETVAL)] = self._number(RETURNS_NO_FETCH)
        passed = {**self._arguments(activation), **self._results(activation), **self._repeated(activation)}
        if passed:
            starts = np.cumsum(template.counts) - template.counts
            inputs = [
                list(zip(src[s : s + c], output[s : s + c], strict=True)) for s, c in zip(starts, counts, strict=True)
            ]
            for n, sources in passed.items():
                kind = passing_on(body.graph.properties[n])
                kinds[n], inputs[n], counts[n] = self._number(kind), sources, len(sources)
            flat = [source for sources in inputs for source in sources]
            src, output = (np.array(column, np.int32) for column in (zip(*flat, strict=True) if flat else ([], [])))
        return RowColumns(kinds, counts, src, output, sender)

    def _number(self, kind: NodeProperties) -> int:
        return self.kinds.setdefault(kind, len(self.kinds))

    def _template(self, body: Body) -> _Template:
        if id(body) not in self._templates:
            self._templates[id(body)] = _template(body)
        return self._templates[id(body)]

    def _outside(self, activation: Activation, node: int) -> int:
        """The row of a node of another level, or iteration, that an activation reads."""
        run, script = activation.run, activation.place.script
        assert script is not None
        assert script.levels is not None
        match script.levels.graph.node_class(node):
            case NodeClass.EXIT:
                inner = activation.opened[script.levels.frames.of[node]]
                return _row(inner.iterations[inner.count], node)
            case NodeClass.NEXT_ITERATION:
                assert isinstance(run, LoopRun)
                return _row(run.iterations[activation.place.number - 1], node)
        assert isinstance(run, LoopRun)
        return _row(run.parent, node)

    def _arguments(self, activation: Activation) -> dict[int, list[_Output]]:
        """The arguments of a function, with the tensors that they are."""
        run = activation.run
        if not isinstance(run, CallRun) or run.call.kind is Calls.MAP:
            return {}
        before, first = run.before[activation.base], inputs_before_arguments(run.call.kind)
        own, arguments = arguments_of_its_own(run.call.kind), {}
        for index, n in self._ends(activation, NodeClass.ARG).items():
            if index < own:
                continue
            if before is None:
                arguments[n] = [self._input(run.caller, run.node, index - own + first)]
            else:
                arguments[n] = [self._result(before, index - own)]
        return arguments

    def _results(self, activation: Activation) -> dict[int, list[_Output]]:
        """The calls in an activation, with the tensors that their functions returned."""
        results = {}
        for node, run in activation.calls.items():
            count = len(activation.body.graph.properties[node].output_types)
            if not count or run.call.kind is Calls.MAP:
                continue
            if run.last is None:  # a loop that did not run
                first = inputs_before_arguments(run.call.kind)
                results[node] = [self._input(activation, node, first + index) for index in range(count)]
            else:
                results[node] = [self._result(run.last, index) for index in range(count)]
        return results

    def _result(self, activation: Activation, index: int) -> _Output:
        """The tensor that a function returned."""
        return self._input(activation, self._ends(activation, NodeClass.RETVAL)[index], 0)

    def _ends(self, activation: Activation, kind: NodeClass) -> dict[int, int]:
        """The arguments or results in the body of a function, by their indices."""
        graph = activation.body.graph
        ends = self._all_ends.get((id(graph), kind))
        if ends is None:
            nodes: list[int] = np.flatnonzero(graph.of_class(kind)).tolist()
            ends = self._all_ends[id(graph), kind] = {graph.properties[n].attrs["index"]: n for n in nodes}
        return ends

    def _input(self, activation: Activation, node: int, port: int) -> _Output:
        """What a node reads."""
        gates = activation.body.gates
        if gates is None:
            source, output = activation.body.graph.inputs_of(node)[port]
            return activation.base + source, output
        source, output = gates.whole.inputs_of(gates.nodes[node])[port]
        if (source, gates.nodes[node]) in gates.outside:
            return self._outside(activation, source), output
        return activation.base + gates.local[source], output

    def _repeated(self, activation: Activation) -> dict[int, list[_Output]]:
        """Constants that an earlier activation has, with their first rows."""
        graph, gates, repeated = activation.body.graph, activation.body.gates, {}
        for n in np.flatnonzero(graph.of_class(NodeClass.CONSTANT)).tolist():
            key = (id(graph), n) if gates is None else (id(gates.whole), gates.nodes[n])
            first = self._constants.setdefault(key, activation.base + n)
            if first != activation.base + n:
                repeated[n] = [(first, 0)]
        return repeated


def _row(activation: Activation, node: int) -> int:
    assert activation.body.gates is not None  # as it is the activation of a level
    return activation.base + activation.body.gates.local[node]


def _template(body: Body) -> _Template:
    """Inputs of dead tensors, which only Merges have, are left out."""
    graph, gates = body.graph, body.gates
    if gates is None:
        return _Template(np.diff(graph.input_start).astype(np.int32), graph.input_src, graph.input_output, [])
    counts, src, output, outside = [], list[int](), list[int](), []
    for n in gates.nodes:
        before = len(src)
        for source, port in gates.whole.inputs_of(n):
            if (source, n) in gates.outside:
                outside.append((len(src), source, port))
            elif gates.local[source] < 0 or gates.whole.is_back_edge(source, n):
                continue
            src.append(gates.local[source])
            output.append(port)
        counts.append(len(src) - before)
    return _Template(np.array(counts, np.int32), np.array(src, np.int32), np.array(output, np.int32), outside)
