"""The sizes of tensors before a run, with numbers that stand for unknown sizes.

`GivenSizes` is a tuple with one number per axis: the size, or a negative number that stands for one unknown size
wherever it occurs. A bare negative number stands for one shape of unknown rank. So the sum of two tensors of shape
(batch, 5), batch unknown, is known to broadcast neither of them. `infer_shapes` follows more, such as the values of
shape tensors, but it cannot tell which unknown sizes are equal, and it always walks the whole graph: here sizes are
computed on demand and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...errors import PartitaError
from ..dtypes import Array, Shape
from ..edge_ends import Output
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from .shape_functions import ShapeContext, broadcast_binary, lookup, unchanged

GivenSizes: TypeAlias = "tuple[int, ...] | int"

_VALUES_UP_TO = 32  # most elements of constants that are passed to shape functions


class SizeFacts:
    """Sizes of outputs, computed on demand."""

    def __init__(self, sources: Callable[[int], Sequence[Output]], properties: Callable[[int], NodeProperties]) -> None:
        """`sources` gives the outputs that a node reads, by port, and `properties` its properties, both by node id."""
        self._sources = sources
        self._properties = properties
        self._known: dict[int, tuple[GivenSizes, ...]] = {}
        self._found: dict[tuple[NodeProperties, tuple[Shape, ...]], Sequence[Shape]] = {}
        self._last_name = 0

    def of(self, output: Output) -> GivenSizes:
        """The sizes of an output."""
        return self.of_node(output[0])[output[1]]

    def of_node(self, node: int) -> tuple[GivenSizes, ...]:
        """The sizes of all outputs of a node."""
        known = self._known
        waiting = [node] if node not in known else []
        while waiting:
            last = waiting[-1]
            properties = self._properties(last)
            is_merge = properties.op_def.record.node_class is NodeClass.MERGE
            # The back edge of a loop depends on the Merge itself, so its sizes are not known yet.
            inputs = () if is_merge else self._sources(last)
            missing = [src for src, _ in inputs if src not in known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if last not in known:
                known[last] = self._infer(last, properties, inputs)
        return known[node]

    def _infer(self, node: int, properties: NodeProperties, sources: Sequence[Output]) -> tuple[GivenSizes, ...]:
        inputs = [self._known[src][port] for src, port in sources]
        function = lookup(properties.op_def.name)
        if function is unchanged:
            return (inputs[0],) * len(properties.output_types)
        if function is broadcast_binary and (inputs[0] == inputs[1] or () in inputs):
            return (inputs[1] if inputs[0] == () else inputs[0],)
        shapes = self._shapes(properties, sources, tuple(map(_shape, inputs)))
        return tuple(self._named(properties, inputs, shape) for shape in shapes)

    def _shapes(
        self, properties: NodeProperties, sources: Sequence[Output], inputs: tuple[Shape, ...]
    ) -> Sequence[Shape]:
        nothing = (None,) * len(properties.output_types)
        if properties.op_def.name == "ReadVariableOp":
            handle = self._properties(sources[0][0])
            return (handle.attrs["shape"],) if handle.op_def.name == "VarHandleOp" else nothing
        function = lookup(properties.op_def.name)
        if function is None or (sources and properties.op_def.record.node_class is NodeClass.MERGE):
            return nothing
        constants = self._constants(sources)
        key = properties, inputs
        shapes = None if constants else self._found.get(key)
        if shapes is None:
            types = properties.input_types, properties.output_types
            try:
                shapes = function(ShapeContext(properties.op, properties.attrs, inputs, *types, constants))
            except (PartitaError, IndexError):  # a wrong graph, or a Merge without inputs
                shapes = nothing
            if not constants:
                self._found[key] = shapes
        return shapes

    def _constants(self, sources: Sequence[Output]) -> dict[int, Array]:
        constants = {}
        for port, (src, _) in enumerate(sources):
            properties = self._properties(src)
            if properties.op_def.name == "Const" and properties.attrs["value"].size <= _VALUES_UP_TO:
                constants[port] = properties.attrs["value"]
        return constants

    def _named(self, properties: NodeProperties, inputs: Sequence[GivenSizes], shape: Shape) -> GivenSizes:
        """A shape with a number for every unknown size: that of the input where it comes from, or a new one."""
        if shape is None:
            return self._new_name()
        if None not in shape:
            return tuple([size for size in shape if size is not None])
        named = [self._new_name() if size is None else size for size in shape]
        op = properties.op_def.name
        if op == "MatMul" and shape[0] is None and isinstance(inputs[0], tuple):
            named[0] = inputs[0][1 if properties.attrs["transpose_a"] else 0]
        elif properties.op_def.record.keeps_first_axis and shape[0] is None and isinstance(inputs[0], tuple):
            named[0] = inputs[0][0]
        elif lookup(op) is broadcast_binary:
            named = list(_joined(inputs[0], inputs[1], named))
        return tuple(named)

    def _new_name(self) -> int:
        self._last_name -= 1
        return self._last_name


def _joined(x: GivenSizes, y: GivenSizes, fresh: Sequence[int]) -> Sequence[int]:
    """Sizes of a broadcast of x and y, with those of `fresh` where neither decides."""
    if isinstance(x, int) or isinstance(y, int):
        return fresh
    rank = len(fresh)
    xs, ys = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    return [
        a if b in (1, a) else b if a == 1 or b > 1 else a if a > 1 else new
        for a, b, new in zip(xs, ys, fresh, strict=True)
    ]


def _shape(sizes: GivenSizes) -> Shape:
    return None if isinstance(sizes, int) else tuple([None if size < 0 else size for size in sizes])


def static(sizes: GivenSizes | None) -> tuple[int, ...] | None:
    """The shape if all sizes are known, else None."""
    return sizes if isinstance(sizes, tuple) and all(size >= 0 for size in sizes) else None
