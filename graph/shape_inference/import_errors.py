"""The error of a shape function with its context, as TensorFlow 2.21 words it.

    Shape must be rank 2 but is rank 1 for '{{node m}} = MatMul[T=DT_FLOAT](a, b)' with input shapes: [2], [2,2].

Values of inputs follow as far as the shape function has asked for them: "and with computed input tensors: input[1] =
<4 5>", or "and with input tensors computed as partial shapes: input[1] = [?,7]" where they are read as a shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ...errors import PartitaError
from ..analysis.dims import shape_text
from ..analysis.joined import JoinedGraph
from ..analysis.shape_functions import ShapeContext, lookup
from ..dtypes import Array
from ..ops.summaries import array_text, summarize_node

_MAX_ELEMENTS = 256  # of a value that is printed
_Value = TypeVar("_Value")


class _Asked(Mapping[int, _Value]):
    """Values of inputs that notes for which inputs it was asked."""

    def __init__(self, values: Mapping[int, _Value]) -> None:
        self._values = values
        self.asked: set[int] = set()

    def __getitem__(self, index: int) -> _Value:
        self.asked.add(index)
        return self._values[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def in_context(error: PartitaError, graph: JoinedGraph, n: int, context: ShapeContext) -> PartitaError:
    """The error of the shape function of node `n`, called with `context`, with the node and what it was computed from.

    An error from inside of a called function is returned as it is.
    """
    if error.function is not None:
        return error.located(node=graph.names[n], op=context.op)
    shapes = ", ".join("?" if shape is None else shape_text(shape) for shape in context.inputs)
    without_values = _error_of(replace(context, constants={}, partials={}))
    values = _values_read(context) if without_values is None else ""
    error = error if without_values is None else without_values
    message = f"{error.message} for '{_summary(graph, n)}' with input shapes: {shapes}{values}."
    return type(error)(message, node=graph.names[n], op=context.op)


def _error_of(context: ShapeContext) -> PartitaError | None:
    """What the shape function raises; TensorFlow calls it without values first, which often is enough to refuse."""
    function = lookup(context.op)
    try:
        if function is not None:
            function(context)
    except PartitaError as error:
        return error
    return None


def _summary(graph: JoinedGraph, n: int) -> str:
    properties, names = graph.properties_of(n), graph.names
    inputs = [names[src] if output == 0 else f"{names[src]}:{output}" for src, output in graph.inputs_of(n)]
    inputs += sorted(f"^{names[src]}" for src in graph.controls_of(n))
    attrs = {name: properties.attrs.message(name) for name in properties.attrs}
    return summarize_node(names[n], properties.op, inputs, attrs, graph.devices[int(graph.device_of[n])])


def _values_read(context: ShapeContext) -> str:
    """The values that the shape function asks for, found out by calling it again."""
    constants, partials = _Asked(context.constants), _Asked(context.partials)
    _error_of(replace(context, constants=constants, partials=partials))
    as_shapes = {i: _sizes(context, i) for i in sorted(partials.asked)}
    values = [(i, context.constants.get(i)) for i in sorted(constants.asked - partials.asked)]
    computed = [f"input[{i}] = <{_value_text(value)}>" for i, value in values if value is not None]
    sizes = [f"input[{i}] = {text}" for i, text in as_shapes.items() if text]
    text = f" and with computed input tensors: {', '.join(computed)}" if computed else ""
    return text + (f" and with input tensors computed as partial shapes: {', '.join(sizes)}" if sizes else "")


def _sizes(context: ShapeContext, index: int) -> str:
    """The value of an input that is read as a shape; "" if nothing of it is known."""
    if index in context.partials:
        return shape_text(context.partials[index])
    value = context.constants.get(index)
    if value is None:
        return ""
    return shape_text([None if size < 0 else size for size in np.asarray(value).reshape(-1).tolist()])


def _value_text(value: Array) -> str:
    return array_text(value, _MAX_ELEMENTS)
