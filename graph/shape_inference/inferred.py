"""The shapes of a graph, by node and by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..analysis.fed_nodes import given_names
from ..analysis.joined import JoinedGraph
from ..analysis.value_rules import is_partial
from ..arrays import Flags, Numbers
from ..columns import Ids
from ..dtypes import Array, Shape, Shapes
from .calls import CallShapes
from .cases import Cases
from .op_shapes import ASSUMED_SHAPES
from .tensor_facts import UNKNOWN, TensorFacts


class AssumedShape(NamedTuple):
    """A shape with sizes that were assumed: `what` is the output, as "shape of output 0"."""

    node: str
    what: str
    value: Shape


class InferredShapes:
    """Shapes by joint number (see `JoinedGraph`), and the assumptions behind them.

    Node `n` is of case `case_of[n]`. Nodes of one case are of one kind and have equal shapes of inputs (`read`) and of
    outputs (`written`). `distinct[shape_of[n]]` are the shapes of the outputs of node `n`.
    """

    def __init__(
        self,
        graph: JoinedGraph,
        case_of: Ids,
        cases: Cases,
        facts: TensorFacts,
        fact_of: Ids,
        out_start: Numbers,
        unused_feeds: Sequence[str],
        called: CallShapes,
    ) -> None:
        """`fact_of[out_start[n] + i]` is the fact of output `i` of node `n`; `called` are the results of calls."""
        self.graph = graph
        self.case_of = case_of
        self._cases = cases
        self._facts = facts
        self._fact_of = fact_of
        self._out_start = out_start
        self.unused_feeds = list(unused_feeds)
        self.called = called
        numbers: dict[Shapes, int] = {}
        number_of_case = np.array([numbers.setdefault(shapes, len(numbers)) for shapes in cases.shapes], np.int32)
        self.distinct = list(numbers)
        self.shape_of: Ids = number_of_case[case_of]

    def part(self, graph: JoinedGraph, nodes: Ids) -> InferredShapes:
        """The shapes of some nodes; `graph` is the part of the graph that has them, in this order."""
        part = copy(self)
        part.__dict__.pop("values", None)
        part.graph, part.case_of, part.shape_of = graph, self.case_of[nodes], self.shape_of[nodes]
        counts = self._out_start[nodes + 1] - self._out_start[nodes]
        part._out_start = np.concatenate([[0], np.cumsum(counts)])
        outputs = np.repeat(self._out_start[nodes] - part._out_start[:-1], counts) + np.arange(counts.sum())
        part._fact_of = self._fact_of[outputs]
        return part

    def of_equal(self, graph: JoinedGraph) -> InferredShapes:
        """These shapes as those of a graph that is equal to theirs in all that they depend on."""
        equal = InferredShapes.__new__(InferredShapes)
        equal.__dict__.update(self.__dict__)  # `copy` does so after a long way round
        equal.graph = graph
        return equal

    def behind(self, n: int, output: int) -> Shapes | None:
        """The shapes behind the handle that an output is; None if that is unknown, or it is none."""
        fact = int(self._fact_of[self._out_start[n] + output])
        return self._facts.behind[fact] if fact >= 0 else None

    def read(self, case: int) -> Shapes:
        """The shapes of the inputs of the nodes of a case."""
        return tuple(map(self._facts.shapes.__getitem__, self._cases.inputs[case]))

    def written(self, case: int) -> Shapes:
        """The shapes of the outputs of the nodes of a case."""
        return self._cases.shapes[case]

    def of(self, n: int) -> Shapes:
        """The shapes of the outputs of a node."""
        return self.distinct[int(self.shape_of[n])]

    @property
    def shapes(self) -> list[Shapes]:
        """The shapes of the outputs of all nodes."""
        return list(map(self.distinct.__getitem__, self.shape_of.tolist()))

    @cached_property
    def values(self) -> dict[tuple[int, int], Array]:
        """Small integers that are known before the run, by (node, output)."""
        is_known = np.array([value is not None and not is_partial(value) for value in self._facts.values], np.bool_)
        outputs = np.flatnonzero(is_known[self._fact_of] & (self._fact_of >= 0))
        nodes = np.searchsorted(self._out_start, outputs, side="right") - 1
        values = {}
        for n, output, fact in zip(
            nodes.tolist(), (outputs - self._out_start[nodes]).tolist(), self._fact_of[outputs].tolist(), strict=True
        ):
            value = self._facts.values[fact]
            if value is not None:
                values[n, output] = value
        return values

    @property
    def may_be_open(self) -> bool:
        """Whether any output has an unknown size."""
        known = self._facts.shapes[UNKNOWN + 1 :]
        return any(shape is None or None in shape for shape in known) or bool((self._fact_of == UNKNOWN).any())

    def is_open(self, nodes: Ids, outputs: Ids) -> Flags:
        """Which of these outputs have an unknown size."""
        is_open_fact = np.array([shape is None or None in shape for shape in self._facts.shapes], np.bool_)
        fact_of = self._fact_of[self._out_start[nodes] + outputs]
        is_open: Flags = is_open_fact[fact_of] & (fact_of >= 0)
        return is_open

    def by_name(self) -> dict[str, Shapes]:
        """Shapes by node name."""
        return dict(zip(self.graph.names, self.shapes, strict=True))

    # What was assumed

    @property
    def assumed(self) -> list[AssumedShape]:
        """Every shape with assumed sizes, in the order of nodes and outputs; a fed tensor has the name it is fed by."""
        entries, given = [], given_names(self.graph)
        cases = self._cases.as_stated | self._cases.assumed
        if not cases:
            return []
        for n in np.flatnonzero(np.isin(self.case_of, list(cases))).tolist():
            case = int(self.case_of[n])
            before, after = cases[case], self._cases.shapes[case]
            for output, (known, shape) in enumerate(zip(before, after, strict=True)):
                if known != shape:
                    entries.append(AssumedShape(given.get(n, self.graph.names[n]), f"shape of output {output}", shape))
        return entries

    @property
    def assumptions(self) -> list[str]:
        """The assumptions in words, one line per kind: unknown sizes were taken as 32: 2 x MatMul, 1 x Placeholder."""
        stated, sizes, ranks, contradictions = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        runs = np.bincount(self.case_of, minlength=len(self._cases.kind)).tolist()
        for case in self._cases.as_stated:
            stated[self._op(case)] += runs[case]
        for case, known in self._cases.assumed.items():
            op = self._op(case)
            ranks[op] += runs[case] * sum(shape is None for shape in known)
            sizes[op] += runs[case] * sum(shape is not None and None in shape for shape in known)
        for case in self._cases.contradictions:
            contradictions[self._op(case)] += runs[case]
        kinds = (
            (stated, f"sizes that depend on values were taken as {ASSUMED_SHAPES} says"),
            (sizes, f"unknown sizes were taken as {self._cases.assumed_size}"),
            (ranks, "unknown shapes were taken as those of the first input"),
            (contradictions, "assumed sizes fit no rule and were passed on"),
        )
        listed = [(text, _counts(counter)) for counter, text in kinds]
        unused = [f"feeds that no part of the step reads: {', '.join(self.unused_feeds)}"] if self.unused_feeds else []
        return [f"{text}: {', '.join(counts)}" for text, counts in listed if counts] + unused

    def _op(self, case: int) -> str:
        return self.graph.ops[self._cases.kind[case]]


def _counts(by_op: Counter[str]) -> list[str]:
    return [f"{count} x {op}" for op, count in sorted(by_op.items()) if count]
