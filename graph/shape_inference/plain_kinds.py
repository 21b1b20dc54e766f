"""Kinds of nodes whose shape function alone decides what is known of their outputs: they are most nodes.

Mul of float       plain: shapes in, shapes out
Mul of int32       not: small values are followed, since shapes are computed from them
StackV2, Merge     not: more is known than shapes, or it depends on more than the inputs
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import PartitaError
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import ShapeFunction, lookup
from ..analysis.value_rules import follows_values
from ..dtypes import DataType, Shapes, base_type, is_ref
from ..library.calls import calls_functions
from ..ops.properties import NodeProperties
from ..ops.record import CONTROL_FLOW, State
from .constant_inputs import ConstantInputs
from .op_shapes import context_of
from .tensor_facts import TensorFacts

_HANDLES = (DataType.RESOURCE, DataType.VARIANT)


class PlainKinds:
    """The plain kinds of a graph, and the shapes of their nodes from the facts of the inputs."""

    def __init__(self, graph: JoinedGraph, facts: TensorFacts, constants: ConstantInputs) -> None:
        self._kinds = graph.kinds
        self._facts = facts
        self._constants = constants
        self._libraries = list({id(library): library for library in graph.functions if library}.values())
        self._functions: dict[int, ShapeFunction | None] = {}  # by kind

    def may_call(self, properties: NodeProperties) -> bool:
        """Whether nodes call functions: then they are not plain."""
        return any(calls_functions(properties, library) for library in self._libraries)

    def function(self, kind: int) -> ShapeFunction | None:
        """The function that decides alone of nodes of a kind; None if there is none."""
        if kind not in self._functions:
            properties = self._kinds[kind] if kind < len(self._kinds) else None  # receives have a number of their own
            is_asked = properties is not None and not self.may_call(properties)
            self._functions[kind] = plain_function(properties) if properties is not None and is_asked else None
        return self._functions[kind]

    def shapes(self, n: int, kind: int, inputs: Sequence[int], producer: int) -> Shapes:
        """The shapes of the outputs of a node of a plain kind. Raises the errors of its shape function."""
        properties, function, values = self._kinds[kind], self._functions[kind], self._facts.values
        assert function is not None  # as the kind is plain
        known = {i: value for i, fact in enumerate(inputs) if (value := values[fact]) is not None}
        if properties.op_def.record.asks_values:
            known.update(self._constants.of(n, known))
        read = tuple(map(self._facts.shapes.__getitem__, inputs))
        return tuple(function(context_of(properties, read, known, producer)))

    def known_shapes(self, n: int, kind: int, inputs: Sequence[int], producer: int) -> Shapes | None:
        """`shapes` if these are all that is to be known: None for other kinds, for unknown sizes and for errors."""
        if self.function(kind) is None:
            return None
        try:
            shapes = self.shapes(n, kind, inputs, producer)
        except PartitaError:
            return None
        if len(shapes) != len(self._kinds[kind].output_types):
            return None
        for shape in shapes:
            if shape is None or None in shape:
                return None
        return shapes


def plain_function(properties: NodeProperties) -> ShapeFunction | None:
    """The shape function that decides alone; None where anything else may. Nodes that call functions are not asked."""
    record = properties.op_def.record
    types = (*properties.input_types, *properties.output_types)
    if record.handle_shape_attr or record.state is State.TABLE or record.reads_handle is not None:
        return None
    if record.node_class in CONTROL_FLOW or any(is_ref(dtype) or base_type(dtype) in _HANDLES for dtype in types):
        return None
    return None if follows_values(properties) else lookup(properties.op)
