"""The shapes that a GraphDef states in `_output_shapes`, checked against inferred shapes when it is imported.

As in TensorFlow, the written shapes are merged with the inferred ones and used for the nodes downstream.
"""

from __future__ import annotations

from ...errors import InvalidArgumentError
from ..analysis.shape_functions import merge
from ..dtypes import Shape, Shapes
from ..ops.properties import NodeProperties
from ..protos import AttrValue, TensorShapeProto
from ..tensor import shape_from_proto

OUTPUT_SHAPES = "_output_shapes"


def written_shapes(properties: NodeProperties) -> Shapes | None:
    """The shapes in the node's attr; None without the attr, and for an attr of that name with another meaning.

    Raises InvalidArgumentError for what is no shape.
    """
    if OUTPUT_SHAPES not in properties.attrs or not _has_shapes(properties.attrs.message(OUTPUT_SHAPES)):
        return None
    return tuple(properties.attrs[OUTPUT_SHAPES])


def _has_shapes(value: AttrValue) -> bool:
    """Whether an attr is a list of shapes, possibly empty; TensorFlow ignores other values."""
    return value.HasField("list") and len(value.list.shape) == sum(len(items) for _, items in value.list.ListFields())


def with_written(name: str, properties: NodeProperties, shapes: Shapes) -> Shapes:
    """Inferred shapes and those in the node's attr together, the inferred ones where there are none.

    Raises InvalidArgumentError if they contradict each other.
    """
    try:
        written = written_shapes(properties)
    except InvalidArgumentError as error:
        raise _invalid(name, properties, error) from None
    if written is None:
        return shapes
    if len(written) < len(shapes):
        raise InvalidArgumentError(
            f"Node '{name}' has {len(shapes)} outputs but the {OUTPUT_SHAPES} attribute specifies shapes for "
            f"{len(written)} outputs",
            node=name,
        )
    return tuple([_both(name, output, *pair) for output, pair in enumerate(zip(shapes, written, strict=False))])


def _invalid(name: str, properties: NodeProperties, error: InvalidArgumentError) -> InvalidArgumentError:
    """The error for a written shape that is none: TensorFlow's, with its missing quote."""
    protos = properties.attrs.message(OUTPUT_SHAPES).list.shape
    bad = next(i for i, proto in enumerate(protos) if not _is_shape(proto))
    return InvalidArgumentError(
        f"Node '{name} has an invalid {OUTPUT_SHAPES} attribute (shape #{bad} error:'{error.message}')", node=name
    )


def _is_shape(proto: TensorShapeProto) -> bool:
    try:
        shape_from_proto(proto)
    except InvalidArgumentError:
        return False
    return True


def _both(name: str, output: int, inferred: Shape, written: Shape) -> Shape:
    """The merge of an inferred and a written shape; InvalidArgumentError if they contradict each other."""
    try:
        return merge(inferred, written)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"Node '{name}' has an {OUTPUT_SHAPES} attribute inconsistent with the GraphDef for output #{output}: "
            f"{error.message}",
            node=name,
        ) from None
