"""The shapes that a GraphDef states in `_output_shapes`, checked against inferred shapes when it is imported.

As in TensorFlow, the written shapes are merged with the inferred ones and used for the nodes downstream.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidArgumentError
from ..analysis.dims import shape_text
from ..dtypes import Shape
from ..ops.properties import NodeProperties
from ..protos import AttrValue
from .calls import Shapes

OUTPUT_SHAPES = "_output_shapes"


def written_shapes(properties: NodeProperties) -> Shapes | None:
    """The shapes in the node's attr; None without the attr, and for an attr of that name with another meaning."""
    if OUTPUT_SHAPES not in properties.attrs or not _has_shapes(properties.attrs.message(OUTPUT_SHAPES)):
        return None
    return tuple(properties.attrs[OUTPUT_SHAPES])


def _has_shapes(value: AttrValue) -> bool:
    """Whether an attr is a list of shapes, possibly empty; TensorFlow ignores other values."""
    return value.HasField("list") and len(value.list.shape) == sum(len(items) for _, items in value.list.ListFields())


def merged(name: str, properties: NodeProperties, shapes: Shapes, written: Shapes) -> Shapes:
    """Both together; InvalidArgumentError if they contradict each other, unless the op's written shapes are ignored."""
    if len(written) < len(shapes):
        raise InvalidArgumentError(
            f"Node '{name}' has {len(shapes)} outputs but the {OUTPUT_SHAPES} attribute specifies shapes for "
            f"{len(written)} outputs",
            node=name,
        )
    try:
        return tuple([_both(name, output, *pair) for output, pair in enumerate(zip(shapes, written, strict=False))])
    except InvalidArgumentError:
        if properties.op_def.record.ignores_written_shapes:
            return shapes
        raise


def _both(name: str, output: int, inferred: Shape, written: Shape) -> Shape:
    """The merge of an inferred and a written shape; InvalidArgumentError if they contradict each other."""
    if inferred is None or written is None:
        return written if inferred is None else inferred
    problem = _contradiction(inferred, written)
    if problem:
        raise InvalidArgumentError(
            f"Node '{name}' has an {OUTPUT_SHAPES} attribute inconsistent with the GraphDef for output #{output}: "
            f"{problem}",
            node=name,
        )
    return tuple(b if a is None else a for a, b in zip(inferred, written, strict=True))


def _contradiction(inferred: Sequence[int | None], written: Sequence[int | None]) -> str:
    if len(inferred) != len(written):
        return f"Shapes must be equal rank, but are {len(inferred)} and {len(written)}"
    for axis, (a, b) in enumerate(zip(inferred, written, strict=True)):
        if a is not None and b is not None and a != b:
            shapes = f"Shapes are {shape_text(inferred)} and {shape_text(written)}."
            return f"Dimension {axis} in both shapes must be equal, but are {a} and {b}. {shapes}"
    return ""
