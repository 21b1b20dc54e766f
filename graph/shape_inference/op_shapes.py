"""The shapes of one node's outputs: by its op's shape function, by what is written in it, or through its handle.

Flows in: the properties of a node, the shapes and known values of its inputs. Flows out: a shape per output. Always
holds: what no rule says is None, an unknown shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis.shape_functions import ShapeContext, lookup
from ..dtypes import Array, DataType, Shape, base_type
from ..ops.properties import NodeProperties
from ..ops.record import NodeClass
from .calls import Shapes
from .values import is_partial, known_sizes

HANDLE_OPS = ("VarHandleOp", "TensorArrayV3")
"""ops whose handle tells the shape of what is read through it"""
_UNCHANGED = (NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION)
_NO_VALUES: Mapping[int, tuple[int | None, ...]] = {}


def shapes_of(properties: NodeProperties, inputs: Shapes, values: Mapping[int, Array]) -> Shapes:
    """By the op's shape function, else by what the importer's program wrote down, else nothing.

    `values` are those of inputs, by position. Raises what the shape function raises, InvalidArgumentError above all.
    """
    if properties.op_def.record.node_class in _UNCHANGED:
        return inputs[:1]  # the registered function of an Enter knows no merges; what a body changes shows there
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
    """What the program that made the node wrote down; else nothing."""
    count = len(properties.output_types)
    written: Sequence[Shape] | None = properties.attrs.get("_output_shapes")
    if not written and "output_shapes" in properties.attrs:
        if all(arg.type for arg in properties.op_def.output_args):
            return ((),) * count  # handles of what has elements of these shapes: datasets
        written = properties.attrs["output_shapes"]
    return tuple(written) if written and len(written) == count else (None,) * count


def shape_behind(properties: NodeProperties) -> tuple[Shape] | None:
    """The shape that the handle a node makes stands for: of its variable, or of each element; None for other nodes."""
    if properties.op == "VarHandleOp":
        return (properties.attrs["shape"],)
    if properties.op == "TensorArrayV3" and properties.attrs["identical_element_shapes"]:
        return (properties.attrs["element_shape"],)
    return None


def shapes_through_handle(properties: NodeProperties, inputs: Shapes, shape: Shape) -> Shapes | None:
    """Shapes of what a node reads through its first input, a handle of a thing of `shape`; None where it reads none."""
    match properties.op:
        case "ReadVariableOp" | "TensorArrayReadV3":
            return (shape,)
        case "TensorArrayGatherV3":
            return (None if shape is None or inputs[1] is None else (*inputs[1], *shape),)
        case "VariableShape":
            return (None if shape is None else (len(shape),),)
        case "ResourceGather" if shape is not None and inputs[1] is not None:
            return ((*inputs[1], *shape[1:]),)
    return None


def passes_handle_on(properties: NodeProperties) -> bool:
    """Whether what a node gives stands for what its first input, a handle, stands for."""
    return base_type(properties.input_types[0]) is DataType.RESOURCE
