"""The shapes of one node's outputs: by its op's shape function, by attrs of the node, or through its handle.

A shape that no rule determines is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis.shape_functions import ShapeContext, lookup
from ..dtypes import Array, DataType, Shape, base_type
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass, ReadsHandle
from .calls import Shapes
from .values import is_partial, known_sizes

_UNCHANGED = (NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION)
_NO_VALUES: Mapping[int, tuple[int | None, ...]] = {}


def shapes_of(properties: NodeProperties, inputs: Shapes, values: Mapping[int, Array]) -> Shapes:
    """By the op's shape function, else by the shapes in the node's attrs, else unknown.

    `values` has known input values by position. Raises the errors of the shape function, mostly InvalidArgumentError.
    """
    if properties.op_def.record.node_class in _UNCHANGED:
        return inputs[:1]  # a loop body may change the shape; the Merge after the Enter takes care of that
    function = lookup(properties.op)
    if function is None:
        return _written_shapes(properties)
    constants, partials = values, _NO_VALUES
    if any(is_partial(value) and properties.op != "Range" for value in values.values()):
        constants = {i: value for i, value in values.items() if not is_partial(value)}
        partials = {i: known_sizes(value) for i, value in values.items() if is_partial(value)}
    types = properties.input_types, properties.output_types
    return tuple(function(ShapeContext(properties.op, properties.attrs, inputs, *types, constants, partials)))


def _written_shapes(properties: NodeProperties) -> Shapes:
    """The shapes in the node's attrs, written by the program that made it; else unknown ones."""
    count = len(properties.output_types)
    written: Sequence[Shape] | None = properties.attrs.get("_output_shapes")
    if not written and "output_shapes" in properties.attrs:
        if all(arg.type for arg in properties.op_def.output_args):
            return ((),) * count  # the node makes handles of datasets, whose elements have these shapes
        written = properties.attrs["output_shapes"]
    return tuple(written) if written and len(written) == count else (None,) * count


def shapes_behind(properties: NodeProperties) -> Shapes | None:
    """The shape of the variable, or of the array elements, whose handle a node makes; None for other nodes."""
    attr = properties.op_def.record.handle_shape_attr
    if not attr or not properties.attrs.get("identical_element_shapes", True):
        return None
    return (properties.attrs[attr],)


def shapes_through_handle(properties: NodeProperties, inputs: Shapes, behind: Shapes) -> Shapes | None:
    """Shapes of the outputs that a node reads through its first input, a handle for values of these shapes; or None."""
    shape = behind[0]
    match properties.op_def.record.reads_handle:
        case ReadsHandle.VALUE:
            return (shape,)
        case ReadsHandle.SHAPE:
            return (None if shape is None else (len(shape),),)
        case ReadsHandle.ELEMENTS:
            return (None if shape is None or inputs[1] is None else (*inputs[1], *shape),)
        case ReadsHandle.ROWS if shape is not None and inputs[1] is not None:
            return ((*inputs[1], *shape[1:]),)
    return None


def passes_handle_on(properties: NodeProperties) -> bool:
    """Whether the first output is the same handle as the first input."""
    return base_type(properties.input_types[0]) is DataType.RESOURCE
