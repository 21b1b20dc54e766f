"""Checks the `_output_shapes` of a GraphDef against inferred shapes when the graph is imported.

As in TensorFlow, the written shapes are merged with the inferred ones and used for the nodes downstream. A graph
without the attr is not inferred at all, because that takes longer than the import.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InvalidArgumentError
from ..analysis.dims import shape_text
from ..attrs import attr_value
from ..dtypes import Shape
from ..graph import Graph
from ..ops.properties import NodeProperties, split_entry
from ..protos import AttrValue, LazyGraphDef
from .infer import Shapes, infer_shapes

OUTPUT_SHAPES = "_output_shapes"


def without_output_shapes(graph_def: LazyGraphDef) -> bytes | None:
    """Removes `_output_shapes` from the GraphDef (in place) and returns its bytes; None if no node has the attr.

    Nodes of functions keep theirs.
    """
    has_shapes = False
    for node in graph_def.node:
        kept = [entry for entry in node.attr if not _is_written(entry)]
        if len(kept) < len(node.attr):
            has_shapes = True
            del node.attr[:]
            node.attr.extend(kept)
    return graph_def.SerializeToString() if has_shapes else None


def _is_written(entry: bytes) -> bool:
    name, value = split_entry(entry)
    return name == OUTPUT_SHAPES and _has_shapes(attr_value(value))


def _has_shapes(value: AttrValue) -> bool:
    """Whether an attr is a list of shapes, possibly empty; TensorFlow ignores other values."""
    return value.HasField("list") and len(value.list.shape) == sum(len(items) for _, items in value.list.ListFields())


def check_output_shapes(graph: Graph, first: int) -> None:
    """Raises InvalidArgumentError for a node from id `first` on whose written shapes contradict inferred ones."""
    imported = {node.name for node in graph.op_nodes() if node.id >= first}

    def refine(name: str, properties: NodeProperties, shapes: Shapes) -> Shapes:
        has_shapes = name in imported and OUTPUT_SHAPES in properties.attrs
        written = properties.attrs[OUTPUT_SHAPES] if has_shapes else None
        if not isinstance(written, tuple) or any(isinstance(shape, int | bytes) for shape in written):
            return shapes  # an attr of that name with another meaning
        return _merged(name, shapes, written)

    infer_shapes(graph, refine=refine)


def _merged(name: str, shapes: Shapes, written: Sequence[Shape]) -> Shapes:
    if len(written) < len(shapes):
        raise InvalidArgumentError(
            f"Node '{name}' has {len(shapes)} outputs but the {OUTPUT_SHAPES} attribute specifies shapes for "
            f"{len(written)} outputs",
            node=name,
        )
    return tuple(_both(name, output, *pair) for output, pair in enumerate(zip(shapes, written, strict=False)))


def _both(name: str, output: int, inferred: Shape, written: Shape) -> Shape:
    """The merge of an inferred and a written shape; InvalidArgumentError if they contradict each other."""
    if inferred is None or written is None:
        return written if inferred is None else inferred
    problem = ""
    if len(inferred) != len(written):
        problem = f"Shapes must be equal rank, but are {len(inferred)} and {len(written)}"
    for axis, (a, b) in enumerate(zip(inferred, written, strict=False)):
        if not problem and a is not None and b is not None and a != b:
            problem = f"Dimension {axis} in both shapes must be equal, but are {a} and {b}. Shapes are "
            problem += f"{shape_text(inferred)} and {shape_text(written)}."
    if problem:
        raise InvalidArgumentError(
            f"Node '{name}' has an {OUTPUT_SHAPES} attribute inconsistent with the GraphDef for output #{output}: "
            f"{problem}",
            node=name,
        )
    return tuple(b if a is None else a for a, b in zip(inferred, written, strict=True))
