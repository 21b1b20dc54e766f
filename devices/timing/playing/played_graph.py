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
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....graph.analysis.node_columns import NodeColumns
from ....graph.arrays import owners
from ....graph.columns import Ids
from ....graph.library.calls import arguments_of_its_own, inputs_before_arguments
from ....graph.ops.properties import NodeProperties, properties_of
from ....graph.ops.record import Calls, NodeClass
from ....graph.shape_inference.infer import Shapes
from ..memory.tensors import KnownShapes
from .activation import PlayedCall, PlayedLoop

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from ....graph.arrays import Numbers
    from ..bodies.body import Body
    from ..memory.tensors import OutputShapes
    from .activation import Activation
    from .ran import Ran

_Output = tuple[int, int]


def played_shapes(activations: Sequence[Ran]) -> KnownShapes:
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


def _graph_of_rows(kinds: list[NodeProperties], names: list[str], activations: Sequence[RowColumns]) -> NodeColumns:
    """The graph of all rows, with the columns that memory needs."""
    kind_of, counts, src, output, sender = (np.concatenate(column) for column in zip(*activations, strict=True))
    input_start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return NodeColumns(names, kinds, kind_of, input_start, src, output, sender)


def _shapes_of_rows(graph: NodeColumns, activations: Sequence[OutputShapes]) -> KnownShapes:
    """The shapes of the outputs of all rows."""
    distinct = dict[Shapes, int]()
    shape_of = [
        np.array([distinct.setdefault(own, len(distinct)) for own in each.distinct], np.int32)[each.shape_of]
        for each in activations
    ]
    return KnownShapes(graph, list(distinct), np.concatenate(shape_of))


class _Template(NamedTuple):
    """The inputs of the nodes of a body: those from nodes of the body, and by position those from elsewhere."""

    counts: Ids
    src: Ids
    output: Ids
    outside: list[tuple[int, int, int]]  # position, joint number of the source, its output


class _Layout(NamedTuple):
    """The columns of the rows of a body; `order` takes from its inputs and the passed tensors those of each row."""

    template: _Template
    kinds: Ids
    counts: Ids
    order: Numbers
    sender: Ids


class _Played:
    def __init__(self, activations: Sequence[Ran]) -> None:
        self.activations = activations
        self._ran = {ran.activation: ran for ran in activations}
        self.kinds: dict[NodeProperties, int] = {}
        self._templates: dict[int, _Template] = {}
        self._layouts: dict[tuple[Hashable, ...], _Layout] = {}
        self._all_ends: dict[tuple[int, NodeClass], dict[int, int]] = {}  # by graph
        self._sources: dict[int, list[_Output]] = {}  # by graph of a function without levels: what it returns
        self._constants: dict[tuple[int, int], int] = {}  # by graph and node: the first row

    def shapes(self) -> KnownShapes:
        """The graph of all rows, and the shapes of their outputs."""
        rows = [self._rows_of(activation) for activation in self.activations]
        names = [name for activation in self.activations for name in activation.body.graph.names]
        graph = _graph_of_rows(list(self.kinds), names, rows)
        return _shapes_of_rows(graph, [activation.body.shapes for activation in self.activations])

    def _rows_of(self, ran: Ran) -> RowColumns:
        """The rows of an activation."""
        activation, _, base = ran
        passed = {**self._arguments(ran), **self._results(ran), **self._repeated(ran)}
        layout = self._layout(ran, {n: len(sources) for n, sources in passed.items()})
        template = layout.template
        src, output = template.src + base, template.output.copy()
        for position, node, port in template.outside:
            src[position], output[position] = self._outside(activation, node), port
        if passed:
            rows, ports = np.array([*chain.from_iterable(passed.values())], np.int32).T
            src, output = np.append(src, rows)[layout.order], np.append(output, ports)[layout.order]
        return RowColumns(layout.kinds, layout.counts, src, output, layout.sender + base * (layout.sender >= 0))

    def _layout(self, ran: Ran, passed: Mapping[int, int]) -> _Layout:
        """The columns of a body in which some nodes pass on so many tensors instead of their inputs."""
        body, is_first = ran.body, ran is self.activations[0]
        key = id(body.graph), is_first, *passed.items()
        if key in self._layouts:
            return self._layouts[key]
        template = self._template(body)
        kinds = np.array([self._number(kind) for kind in body.graph.kinds], np.int32)[body.graph.kind_of]
        if not is_first:
            kinds[body.graph.of_class(NodeClass.RETVAL)] = self._number(RETURNS_NO_FETCH)
        for n in passed:
            kinds[n] = self._number(passing_on(body.graph.properties[n]))
        owner = owners(template.counts)
        is_passed = np.zeros(len(body), np.bool_)
        is_passed[list(passed)] = True
        stays = np.flatnonzero(~is_passed[owner])
        added = np.repeat(np.array(list(passed), np.int64), list(passed.values()))
        dst = np.concatenate([owner[stays], added])
        order = np.concatenate([stays, len(owner) + np.arange(len(added))])[np.argsort(dst, kind="stable")]
        counts = np.bincount(dst, minlength=len(body)).astype(np.int32)
        layout = self._layouts[key] = _Layout(template, kinds, counts, order, body.graph.sender)
        return layout

    def _number(self, kind: NodeProperties) -> int:
        return self.kinds.setdefault(kind, len(self.kinds))

    def _template(self, body: Body) -> _Template:
        key = id(body.graph)
        if key not in self._templates:
            self._templates[key] = _template(body)
        return self._templates[key]

    def _outside(self, activation: Activation, node: int) -> int:
        """The row of a node of another level, or iteration, that an activation reads."""
        run, levels = activation.run, activation.place.graph.levels
        assert levels is not None  # as there is another level
        match levels.graph.node_class(node):
            case NodeClass.EXIT:
                return self._row(activation.opened[levels.frames.of[node]].last, node)
            case NodeClass.NEXT_ITERATION:
                assert isinstance(run, PlayedLoop)
                return self._row(run.iterations[activation.place.number - 1], node)
        assert isinstance(run, PlayedLoop)
        return self._row(run.parent, node)

    def _row(self, activation: Activation, node: int) -> int:
        _, body, base = self._ran[activation]
        assert body.gates is not None  # as it is that of a level
        return base + body.gates.local[node]

    def _arguments(self, ran: Ran) -> dict[int, list[_Output]]:
        """The arguments of a function, with the tensors that they are."""
        run = ran.activation.run
        if not isinstance(run, PlayedCall) or run.kind is Calls.MAP:
            return {}
        before, first = run.before[ran.activation.base], inputs_before_arguments(run.kind)
        own, caller = arguments_of_its_own(run.kind), self._ran[run.caller]
        if before is None:
            passed = self._inputs(caller, self._number_in(caller, run))[first:]
        else:
            passed = self._returned(before)
        ends = self._ends(ran.body, NodeClass.ARG).items()
        return {n: [passed[index - own]] for index, n in ends if index >= own}

    def _number_in(self, caller: Ran, run: PlayedCall) -> int:
        """The number of a node that calls in the body that ran, of its number in the body that was played."""
        played = caller.activation.body.gates
        if played is None or caller.body is caller.activation.body:
            return run.node
        assert caller.body.gates is not None  # as it is compiled for what ran of a level
        return caller.body.gates.local[played.nodes[run.node]]

    def _results(self, ran: Ran) -> dict[int, list[_Output]]:
        """The calls in an activation, with the tensors that their functions returned."""
        results = {}
        for run in ran.activation.calls.values():
            node = self._number_in(ran, run)
            count = len(ran.body.graph.properties[node].output_types)
            if not count or run.kind is Calls.MAP:
                continue
            if run.last is None:  # a loop that did not run
                first = inputs_before_arguments(run.kind)
                results[node] = self._inputs(ran, node)[first : first + count]
            else:
                results[node] = self._returned(run.last)[:count]
        return results

    def _returned(self, activation: Activation) -> list[_Output]:
        """The tensors that a function returned."""
        ran = self._ran[activation]
        _, body, base = ran
        ends = self._ends(body, NodeClass.RETVAL)
        if body.gates is not None:
            return [self._inputs(ran, ends[index])[0] for index in range(len(ends))]
        sources = self._sources.get(id(body.graph))
        if sources is None:
            found = [body.graph.inputs_of(ends[index])[0] for index in range(len(ends))]
            sources = self._sources[id(body.graph)] = found
        return [(base + source, output) for source, output in sources]

    def _ends(self, body: Body, kind: NodeClass) -> dict[int, int]:
        """The arguments or results in the body of a function, by their indices."""
        graph = body.graph
        ends = self._all_ends.get((id(graph), kind))
        if ends is None:
            nodes: list[int] = np.flatnonzero(graph.of_class(kind)).tolist()
            ends = self._all_ends[id(graph), kind] = {graph.properties[n].attrs["index"]: n for n in nodes}
        return ends

    def _inputs(self, ran: Ran, node: int) -> list[_Output]:
        """What a node reads, by port."""
        activation, body, base = ran
        gates = body.gates
        if gates is None:
            return [(base + source, output) for source, output in body.graph.inputs_of(node)]
        number, local, outside = gates.nodes[node], gates.local, gates.outside
        return [
            (self._outside(activation, source) if (source, number) in outside else base + local[source], output)
            for source, output in gates.whole.inputs_of(number)
        ]

    def _repeated(self, ran: Ran) -> dict[int, list[_Output]]:
        """Constants that an earlier activation has, with their first rows."""
        _, body, base = ran
        graph, gates, repeated = body.graph, body.gates, {}
        for n in np.flatnonzero(graph.of_class(NodeClass.CONSTANT)).tolist():
            key = (id(graph), n) if gates is None else (id(gates.whole), gates.nodes[n])
            first = self._constants.setdefault(key, base + n)
            if first != base + n:
                repeated[n] = [(first, 0)]
        return repeated


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
