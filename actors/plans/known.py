"""Nodes whose outputs are the same in every step: arithmetic on sizes, axes and offsets that are constants.

Graphs that were built with known shapes are full of it. The gradient of a concatenation, for one, works out where its
parts began:

    axis, rank, shape0, shape1        constants
    mod = FloorMod(axis, rank)        known
    ConcatOffset(mod, shape0, ...)    known

They are computed when the plan is compiled, by their kernels, and are constants in it. TensorFlow computes them in each
step, which takes it little time; a call from Python takes as long as the arithmetic of a small layer. Only small
integers are computed in advance, and only with ops that shape inference evaluates too. A node that raises does so in
the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import PartitaError
from ...graph.arrays import Flags, positions
from ...graph.dtypes import DataType
from ...graph.ops.registry import find_op
from .binding import scalar_form
from .columns import OrderedGraph
from .numbering import NodeNumber
from .roles import Role

if TYPE_CHECKING:
    from ...graph.dtypes import Array
    from ...graph.ops.properties import NodeProperties
    from .binding import Binder

Known = Mapping[NodeNumber, Sequence[Any]]  # Any: tensors of any integer type
"""by node, its outputs"""

_TYPES = frozenset({DataType.INT32, DataType.INT64, DataType.BOOL})


def known_nodes(columns: OrderedGraph, roles: Sequence[Role], may_be_dead: Flags, binder: Binder) -> Known:
    """The outputs of the nodes that are computed in advance; `roles` and `may_be_dead` are by node."""
    kinds, kind = columns.kinds, columns.kind
    followed = np.array([_is_followed(p) for p in kinds], bool)[kind] & ~may_be_dead
    computed = followed & np.array([_can_compute(p) for p in kinds], bool)[kind]
    if not any(roles[node] is Role.COMPUTE for node in positions(computed).tolist()):
        return {}
    return _Evaluation(columns, binder).run(roles, followed, computed)


def _is_followed(properties: NodeProperties) -> bool:
    return bool(properties.output_types) and _TYPES.issuperset((*properties.input_types, *properties.output_types))


def _can_compute(properties: NodeProperties) -> bool:
    from ...graph.analysis.value_rules import VALUES

    if not properties.input_types or properties.op_def.is_stateful or properties.op not in VALUES:
        return False
    return find_op(properties.op) is properties.op_def  # and no function of that name


class _Evaluation:
    """The values that have been worked out so far, by number."""

    def __init__(self, columns: OrderedGraph, binder: Binder) -> None:
        self.columns = columns
        self.binder = binder
        self.values: dict[int, Array] = {}
        self.constant_of: dict[int, NodeNumber] = {}

    def run(self, roles: Sequence[Role], followed: Flags, computed: Flags) -> Known:
        """The outputs of the nodes that are `computed`, as far as they are known; only `followed` nodes are read."""
        columns, first = self.columns, self.columns.first_value.tolist()
        known: dict[NodeNumber, Sequence[Any]] = {}
        for number in positions(followed).tolist():
            node = NodeNumber(number)
            if roles[node] is Role.CONST:
                self.constant_of[first[node]] = node
            elif roles[node] is Role.ALIAS or (roles[node] is Role.COMPUTE and computed[node]):
                inputs = self._values(columns.inputs[number])
                outputs = inputs if inputs is None or roles[node] is Role.ALIAS else self._compute(node, inputs)
                if outputs is not None:
                    self.values.update(enumerate(outputs, first[node]))
                    if roles[node] is Role.COMPUTE:
                        known[node] = list(map(scalar_form, outputs))
        return known

    def _values(self, numbers: Sequence[int]) -> list[Array] | None:
        """The values of these numbers, constants read when they are first asked for; None if one is unknown."""
        values: list[Array] = []
        for number in numbers:
            if number not in self.values and number in self.constant_of:
                self.values.update(enumerate(self._evaluate(self.constant_of.pop(number), []) or (), number))
            if number not in self.values:
                return None
            values.append(self.values[number])
        return values

    def _evaluate(self, node: NodeNumber, inputs: Sequence[Array]) -> list[Array] | None:
        """What shape inference makes of a node; None if it is not an integer, or large."""
        from ...graph.analysis.value_rules import evaluate

        outputs = evaluate(self.columns.properties[node], [x.shape for x in inputs], inputs)
        known = [value for value in outputs if value is not None]
        return known if len(known) == len(outputs) else None

    def _compute(self, node: NodeNumber, inputs: Sequence[Array]) -> list[Array] | None:
        """The outputs of a node by its kernel, which also checks the inputs; None where it raises."""
        names, properties = self.columns.names, self.columns.properties
        if self._evaluate(node, inputs) is None:
            return None
        try:
            with np.errstate(all="ignore"):
                result = self.binder.kernel(names[node], properties[node])(*map(scalar_form, inputs))
        except (PartitaError, ArithmeticError, ValueError):
            return None
        outputs = list(map(np.asarray, (result,) if len(properties[node].output_types) == 1 else result))
        for output in outputs:
            output.flags.writeable = False
        return outputs
