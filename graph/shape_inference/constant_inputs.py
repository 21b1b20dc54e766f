"""The values of a node's inputs that are known before the run, beyond those that are followed: constants of any type.

axis = Const 0     joined = ConcatV2(x, y, axis)     ->    {2: 0}
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.joined import JoinedGraph
from ..analysis.value_rules import is_partial
from ..dtypes import numpy_dtype
from ..ops.record import NodeClass

if TYPE_CHECKING:
    from ..arrays import Numbers
    from ..dtypes import Array, DataType
    from .tensor_facts import TensorFacts

NOT_VISITED = -1
"""instead of the number of a fact: that of an output whose node was not visited yet"""


class ConstantInputs:
    """Looks up values in a graph and in the facts found so far: `fact_of[out_start[n] + i]` is that of an output."""

    def __init__(self, graph: JoinedGraph, out_start: Numbers, fact_of: Sequence[int], facts: TensorFacts) -> None:
        self._graph = graph
        self._out_start = out_start
        self._fact_of = fact_of
        self._facts = facts

    @cached_property
    def _leads_on(self) -> bytes:
        """By node 1 for constants and for what passes a value on, or casts it: only these can have one unfollowed."""
        kinds = zip(self._graph.classes, self._graph.ops, self._graph.kinds, strict=True)
        leads_on = [
            node_class is NodeClass.CONSTANT or op == "Cast" or kind.op_def.record.passes_on
            for node_class, op, kind in kinds
        ]
        return np.array(leads_on, np.bool_)[self._graph.kind_of].tobytes()

    def of(self, n: int, followed: Container[int] = ()) -> dict[int, Array]:
        """The known values of the inputs of a node, but of those `followed`; beyond constants only integers are."""
        graph, leads_on = self._graph, self._leads_on
        values: dict[int, Array] = {}
        begin = graph.input_start[n]
        for i, source in enumerate(graph.input_src[begin : graph.input_start[n + 1]].tolist()):
            if leads_on[source] and i not in followed:
                value = self._constant(source, int(graph.input_output[begin + i]))
                if value is not None:
                    values[i] = value
        return values

    def _constant(self, n: int, output: int) -> Array | None:
        """The value of a constant, as far as it is only passed on or cast; or the integers that are followed."""
        casts: list[DataType] = []
        while (value := self._own_value(n, output)) is None:
            properties = self._graph.properties_of(n)
            if properties.op == "Cast":
                casts.append(properties.output_types[0])
            elif not properties.op_def.record.passes_on:
                return None
            n, output = self._graph.inputs_of(n)[0]
        for dtype in reversed(casts):
            value = value.astype(numpy_dtype(dtype))
        return value

    def _own_value(self, n: int, output: int) -> Array | None:
        properties = self._graph.properties_of(n)
        if properties.op_def.record.node_class is NodeClass.CONSTANT:
            constant: Array = properties.attrs["value"]
            return constant
        fact = self._fact_of[self._out_start[n] + output]
        value = self._facts.values[fact] if fact != NOT_VISITED else None
        return None if value is None or is_partial(value) else value
