"""The shapes of one node's outputs: by its op's shape function, by attrs of the node, or through its handle.

A shape that no rule determines is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import InvalidArgumentError
from ..analysis.dims import shape_text
from ..analysis.shape_functions import ShapeContext, lookup, merge, with_rank_at_least
from ..analysis.value_rules import is_partial, known_sizes
from ..dtypes import REF_OFFSET, Array, DataType, Shape, Shapes, base_type
from ..ops.properties import NodeProperties
from ..ops.record import Calls, NodeClass, ReadsHandle, State
from ..ops.registry import PRODUCER

_UNCHANGED = (NodeClass.ENTER, NodeClass.EXIT, NodeClass.NEXT_ITERATION)
ASSUMED_SHAPES = "_assumed_shapes"
"""the attr by which a graph says what sizes to take on the clock where they depend on values: no truth of any run"""
_WITH_RESERVE, _RESERVE = "FusedBatchNormV3", 5  # the op, and its output for its gradient alone
_BRANCHES = (Calls.IF, Calls.CASE)
_NO_VALUES: Mapping[int, tuple[int | None, ...]] = {}


def shapes_of(
    properties: NodeProperties, inputs: Shapes, values: Mapping[int, Array], producer: int = PRODUCER
) -> Shapes:
    """By the op's shape function, else by the shapes in the node's attrs, else unknown.

    `values` has known input values by position, `producer` is the version of the graph. Raises the errors of the shape
    function, mostly InvalidArgumentError.
    """
    if properties.op_def.record.node_class in _UNCHANGED:
        return inputs[:1]  # a loop body may change the shape; the Merge after the Enter takes care of that
    function = lookup(properties.op)
    if function is None:
        return _written_shapes(properties)
    return tuple(function(context_of(properties, inputs, values, producer)))


def context_of(
    properties: NodeProperties, inputs: Shapes, values: Mapping[int, Array], producer: int = PRODUCER
) -> ShapeContext:
    """The arguments of the node's shape function."""
    constants, partials = values, _NO_VALUES
    if any(is_partial(value) and properties.op != "Range" for value in values.values()):
        constants = {i: value for i, value in values.items() if not is_partial(value)}
        partials = {i: known_sizes(value) for i, value in values.items() if is_partial(value)}
    types = properties.input_types, properties.output_types
    return ShapeContext(properties.op, properties.attrs, inputs, *types, constants, partials, producer)


def _written_shapes(properties: NodeProperties) -> Shapes:
    """The shapes in the node's attrs, written by the program that made it; else unknown ones.

    Raises InvalidArgumentError for a conditional that promises another number of shapes than it has outputs.
    """
    count = len(properties.output_types)
    written: Sequence[Shape] | None = properties.attrs.get("_output_shapes")
    if not written and "output_shapes" in properties.attrs:
        if all(arg.type for arg in properties.op_def.output_args):
            return ((),) * count  # the node makes handles of datasets, whose elements have these shapes
        written = properties.attrs["output_shapes"]
        if written and len(written) != count and properties.op_def.record.calls in _BRANCHES:
            raise InvalidArgumentError(
                f"`output_shapes` must be the same length as num outputs ({len(written)} vs. {count}"
            )
    return tuple(written) if written and len(written) == count else (None,) * count


def shapes_behind(properties: NodeProperties, inputs: Shapes, *, is_step: bool) -> Shapes | None:
    """The shapes that a node states of what is behind the handle that it makes; None for other nodes.

    A variable or an array has one, a queue one per component of its elements, if it states any, a table that of a value
    and that of a key. TensorFlow's import looks through handles of variables, of tables that change, and of arrays
    whose elements are all alike; so only one step knows the others.
    """
    record = properties.op_def.record
    attr = record.handle_shape_attr
    if record.state is State.TABLE and properties.output_types == (DataType.RESOURCE,):
        key = inputs[record.key_shape_input] if record.key_shape_input >= 0 else ()
        value = properties.attrs.get("value_shape", ())  # a scalar where the op has no attr
        return None if record.hides_shape and not is_step else (value, key)
    is_known_to_import = record.state is not State.QUEUE and properties.attrs.get("identical_element_shapes", True)
    if not attr or not (is_step or is_known_to_import):
        return None
    stated = properties.attrs[attr]
    return (tuple(stated) or None) if properties.op_def.attrs[attr].type == "list(shape)" else (stated,)


def shapes_through_handle(
    properties: NodeProperties, inputs: Shapes, behind: Shapes, values: Sequence[Array | None]
) -> Shapes | None:
    """Shapes of the outputs that a node reads through its first input, a handle for values of these shapes; or None."""
    shape = behind[0]
    match properties.op_def.record.reads_handle:
        case ReadsHandle.VALUE:
            return (shape,)
        case ReadsHandle.SHAPE:
            return (None if shape is None else (len(shape),),)
        case ReadsHandle.LAST:
            return ((), shape)
        case ReadsHandle.STACKED:
            return (None if shape is None else (None, *shape),)
        case ReadsHandle.JOINED:
            return (None if not shape else (None, *shape[1:]), (None,))
        case ReadsHandle.ELEMENTS:
            return (_elements(shape, inputs[1], behind[1] if len(behind) > 1 else ()),)
        case ReadsHandle.ROWS if shape is not None and inputs[1] is not None:
            return (_rows(shape, inputs[1], properties.attrs["batch_dims"]),)
        case ReadsHandle.SLICES if (gather := lookup("GatherNd")) is not None:
            return tuple(gather(context_of(properties, (shape, inputs[1]), {})))
        case ReadsHandle.ITEM:
            return _components(properties, behind)
        case ReadsHandle.ITEMS:
            return _stacked(_components(properties, behind), values[1])
        case ReadsHandle.UP_TO:
            return _stacked(_components(properties, behind), None)
        case ReadsHandle.KEYED:
            has_all = not properties.attrs["allow_small_batch"]
            return _stacked(_components(properties, ((), (), *behind)), values[1] if has_all else None)
    return None


def _rows(value: tuple[int | None, ...], indices: tuple[int | None, ...], batch: int) -> Shape:
    """The shape of rows of a value, along the axis behind the first `batch` ones, which the indices have, too."""
    with_rank_at_least(value, batch + 1)
    with_rank_at_least(indices, batch)
    return (*value[:batch], *indices[batch:], *value[batch + 1 :])


def _elements(value: Shape, keys: Shape, key: Shape) -> Shape:
    """The shape of the values of several keys; only ranks are compared, as in TensorFlow."""
    if value is None or keys is None or key is None:
        return None
    count = len(keys) - len(key)
    if count < 0:
        raise InvalidArgumentError(f"Expected keys to have suffix {shape_text(key)} but saw shape: {shape_text(keys)}")
    return (*keys[:count], *value)


def _components(properties: NodeProperties, stated: Shapes) -> Shapes | None:
    """One shape per output; the elements of a PriorityQueue begin with a scalar that its attr leaves out."""
    scalars = len(properties.output_types) - len(stated)
    return ((),) * scalars + stated if 0 <= scalars <= 1 else None


def _stacked(components: Shapes | None, count: Array | None) -> Shapes | None:
    """The shapes of stacked elements; their number is unknown if `count` is None."""
    if components is None or (count is not None and (is_partial(count) or count.size != 1 or count.item() < 0)):
        return None  # the shape function reports a negative number
    first = None if count is None else int(count.item())
    return tuple([None if shape is None else (first, *shape) for shape in components])


def passes_handle_on(properties: NodeProperties) -> bool:
    """Whether the first output is the same handle as the first input; the first version of queues has string ones."""
    dtype = properties.input_types[0]
    return base_type(dtype) is DataType.RESOURCE or dtype == DataType.STRING + REF_OFFSET


def in_a_step(properties: NodeProperties, shapes: Shapes, values: Sequence[Array | None]) -> Shapes:
    """Shapes of one step, completed by known values, by what the program stated of any step, and by what kernels do.

    Shapes that the program wrote into `_output_shapes` hold where they do not contradict the rule of the op. What a
    batch normalisation reserves for its gradient is a scalar in TensorFlow's kernels for CPUs, and next to nothing in
    others.
    """
    if all(shape is not None and None not in shape for shape in shapes):
        return shapes
    if values:
        pairs = zip(shapes, values, strict=True)
        shapes = tuple([shape if value is None or is_partial(value) else value.shape for shape, value in pairs])
    if properties.op == _WITH_RESERVE:
        shapes = tuple([() if i == _RESERVE and shape is None else shape for i, shape in enumerate(shapes)])
    written = properties.attrs.get("_output_shapes")
    if not isinstance(written, Sequence) or len(written) != len(shapes):
        return shapes
    return tuple(map(completed, shapes, written))


def with_assumed(properties: NodeProperties, shapes: Shapes) -> Shapes:
    """Shapes whose unknown sizes are those of the attr `_assumed_shapes`; the same object where it adds nothing.

    Raises InvalidArgumentError for an attr that has not one shape for each output.
    """
    assumed = properties.attrs.get(ASSUMED_SHAPES)
    if assumed is None or all(shape is not None and None not in shape for shape in shapes):
        return shapes
    if not isinstance(assumed, Sequence) or len(assumed) != len(shapes):
        raise InvalidArgumentError(
            f"attr {ASSUMED_SHAPES} of a {properties.op} must have a shape for each of {len(shapes)} outputs"
        )
    return tuple(map(completed, shapes, assumed))


def completed(shape: Shape, written: Shape) -> Shape:
    """The shape with the sizes that only `written` has; alone if the two contradict each other."""
    try:
        return merge(shape, written)
    except InvalidArgumentError:
        return shape
