"""Shapes of a trace where the graph alone does not tell them.

They become feeds of the second inference: `{"x:0": (2, 3)}`. What the graph tells stays, and must not contradict.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.analysis.shape_functions import merge

if TYPE_CHECKING:
    from ....graph.dtypes import Shape
    from ....graph.shape_inference.infer import InferredShapes, Shapes


def missing_shapes(inferred: InferredShapes, traced: Mapping[str, Shapes], given: Container[str]) -> dict[str, Shape]:
    """Tensor names -> shapes of the trace, for outputs whose size is not known; not for those that are `given`.

    Raises InvalidArgumentError where trace and graph contradict each other: the trace is of another graph.
    """
    missing: dict[str, Shape] = {}
    for n, node in enumerate(inferred.graph.names):
        for output, (shape, seen) in enumerate(zip(inferred.of(n), traced.get(node, ()), strict=False)):
            tensor = f"{node}:{output}"
            if seen is None or tensor in given or seen == shape:
                continue
            try:
                missing[tensor] = merge(shape, seen)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(
                    f"the trace is of another graph or of other feeds: there {tensor!r} has shape {shape_text(seen)}, "
                    f"here {shape_text(shape)}",
                    node=node,
                    op=inferred.graph.op(n),
                ) from error
    return {tensor: shape for tensor, shape in missing.items() if shape is not None}
