"""A virtual step as one graph with a node per row, as `devices/timing/playing/played_graph` makes it of a played step.

    rows of the step                  inputs
    3  Enter          of x
    7  Merge          iteration 0     3, which another iteration gave: it was recorded while the step ran
    9  Mul            iteration 0     7

An argument of a function is the caller's tensor, the result of a call is that of the function, and a constant of a loop
is there once.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ....devices.timing.playing.played_graph import RETURNS_NO_FETCH, RowColumns, graph_of_rows, passing_on
from ....graph.arrays import owners
from ....graph.library.calls import arguments_of_its_own, inputs_before_arguments
from ....graph.ops.record import LOOPS, Calls, NodeClass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....graph.analysis.joined import JoinedGraph
    from ....graph.arrays import Numbers
    from ....graph.ops.properties import NodeProperties
    from .rows import Rows

_Output = tuple[int, int]  # a row and the number of an output


class Inputs(NamedTuple):
    """The data inputs of the nodes of an activation: its nodes, and rows of the step with their outputs."""

    dst: Numbers
    src: Numbers
    output: Numbers


class RanGraph:
    """The rows of a step, numbered from 0, and what they depended on."""

    def __init__(self, rows: Sequence[Rows]) -> None:
        self.rows = rows
        self.bases: list[int] = [0, *accumulate(len(r.body) for r in rows[:-1])]
        self._first = [r.base for r in rows]
        self._constants: dict[tuple[int, int], int] = {}  # by graph and node: the first row

    def graph(self) -> JoinedGraph:
        """The graph of all rows."""
        kinds: dict[NodeProperties, int] = {}
        columns = [self._columns(number, kinds) for number in range(len(self.rows))]
        names = [name for r in self.rows for name in r.body.graph.names]
        return graph_of_rows(list(kinds), names, columns)

    # Rows

    def row(self, row: int) -> int:
        """The number that a row of the clock has in the step."""
        number = bisect_right(self._first, row) - 1
        return self.bases[number] + row - self._first[number]

    def _at(self, base: int) -> Rows:
        """The rows of a run, by its first."""
        return self.rows[bisect_right(self._first, base) - 1]

    def calls_of(self, r: Rows, node: int) -> Calls | None:
        """How a node calls functions."""
        return r.body.graph.properties[node].op_def.record.calls

    # Data

    def _columns(self, number: int, kinds: dict[NodeProperties, int]) -> RowColumns:
        r, base = self.rows[number], self.bases[number]
        graph, inputs = r.body.graph, self.inputs(number)
        kind_of = np.array([kinds.setdefault(kind, len(kinds)) for kind in graph.kinds], np.int32)[graph.kind_of]
        if number:
            kind_of[graph.of_class(NodeClass.RETVAL)] = kinds.setdefault(RETURNS_NO_FETCH, len(kinds))
        passed = {**self._arguments(r), **self._results(r), **self._repeated(r, base)}
        if passed:
            for node in passed:
                kind_of[node] = kinds.setdefault(passing_on(graph.properties[node]), len(kinds))
            inputs = _with(inputs, passed)
        counts = np.bincount(inputs.dst, minlength=len(r.body)).astype(np.int32)
        sender = np.where(graph.sender >= 0, graph.sender + base, -1).astype(np.int32)
        return RowColumns(kind_of, counts, inputs.src.astype(np.int32), inputs.output.astype(np.int32), sender)

    def inputs(self, number: int) -> Inputs:
        """The inputs of an activation. A Merge has those that it got, and not what a later iteration gets."""
        r = self.rows[number]
        graph = r.body.graph
        dst, src = owners(np.diff(graph.input_start)), graph.input_src + np.int64(self.bases[number])
        fed = {int(graph.input_start[node]) + port: row for (node, port), row in r.fed.items()}
        src[list(fed)] = [self.row(row) for row in fed.values()]
        is_kept = np.ones(len(dst), np.bool_)
        for k in np.flatnonzero(graph.of_class(NodeClass.MERGE)[dst]).tolist():
            source, output = int(graph.input_src[k]), int(graph.input_output[k])
            is_kept[k] = k in fed or (r.has(source, output) and not graph.is_back_edge(source, int(dst[k])))
        return Inputs(dst[is_kept], src[is_kept], graph.input_output[is_kept].astype(np.int64))

    def _input(self, r: Rows, node: int, port: int) -> _Output:
        """What a node reads."""
        source, output = r.body.graph.inputs_of(node)[port]
        return self.row(r.fed.get((node, port), r.base + source)), output

    def _arguments(self, r: Rows) -> dict[int, list[_Output]]:
        """The arguments of a function, with the tensors that they are."""
        if r.called is None:
            return {}
        caller = self._at(r.called.row)
        node = r.called.row - caller.base
        kind = self.calls_of(caller, node)
        if kind is Calls.MAP:
            return {}
        own, first, before = arguments_of_its_own(kind), inputs_before_arguments(kind), r.called.before
        given = [(n, index - own) for n, index in _ends(r, NodeClass.ARG) if index >= own]
        if before >= 0:
            return {n: [self._result(before, index)] for n, index in given}
        return {n: [self._input(caller, node, first + index)] for n, index in given}

    def _results(self, r: Rows) -> dict[int, list[_Output]]:
        """The calls in an activation, with the tensors that their functions returned."""
        results = {}
        for node, calls in r.calls.items():
            count, kind = len(r.body.graph.properties[node].output_types), self.calls_of(r, node)
            if not count or kind is Calls.MAP:
                continue
            last = [call.base for call in calls if call.gives_results][-1:]
            if last:
                results[node] = [self._result(last[0], index) for index in range(count)]
            elif kind in LOOPS:  # a loop that did not run
                first = inputs_before_arguments(kind)
                results[node] = [self._input(r, node, first + index) for index in range(count)]
        return results

    def _result(self, base: int, index: int) -> _Output:
        """The tensor that a run returned."""
        r = self._at(base)
        return next(self._input(r, n, 0) for n, i in _ends(r, NodeClass.RETVAL) if i == index)

    def _repeated(self, r: Rows, base: int) -> dict[int, list[_Output]]:
        """Constants that an earlier activation has, with their first rows."""
        graph, repeated = r.body.graph, {}
        for n in np.flatnonzero(graph.of_class(NodeClass.CONSTANT)).tolist():
            if n in r.shapes:
                first = self._constants.setdefault((id(graph), n), base + n)
                if first != base + n:
                    repeated[n] = [(first, 0)]
        return repeated


def _ends(r: Rows, kind: NodeClass) -> list[tuple[int, int]]:
    """The arguments or results in the body of a function, with their indices."""
    graph = r.body.graph
    nodes: list[int] = np.flatnonzero(graph.of_class(kind)).tolist()
    return [(n, graph.properties[n].attrs["index"]) for n in nodes]


def _with(inputs: Inputs, passed: dict[int, list[_Output]]) -> Inputs:
    """The inputs, with those of some nodes replaced."""
    stays = ~np.isin(inputs.dst, list(passed))
    new = [(node, row, output) for node, sources in passed.items() for row, output in sources]
    added = np.array(new, np.int64).reshape(-1, 3).T
    dst, src, output = (np.concatenate([column[stays], more]) for column, more in zip(inputs, added, strict=True))
    order = np.argsort(dst, kind="stable")
    return Inputs(dst[order], src[order], output[order])
