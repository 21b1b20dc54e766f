"""Shapes of a trace where the graph alone does not tell them.

They become feeds of the second inference: `{"x:0": (2, 3)}`. What the graph tells stays, and must not contradict. The
shape of a handle tells nothing: one runtime has a scalar where another has a vector of two names.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.analysis.shape_functions import merge
from ....graph.dtypes import DataType, make_ref
from ....graph.ops.record import State

if TYPE_CHECKING:
    from ....graph.dtypes import Shape
    from ....graph.ops.properties import NodeProperties
    from ....graph.shape_inference.infer import InferredShapes, Shapes


def missing_shapes(inferred: InferredShapes, traced: Mapping[str, Shapes], given: Container[str]) -> dict[str, Shape]:
    """Tensor names -> shapes of the trace, for outputs whose size is not known; not for those that are `given`.

    Raises InvalidArgumentError where trace and graph contradict each other: the trace is of another graph.
    """
    missing: dict[str, Shape] = {}
    for n, node in enumerate(inferred.graph.names):
        handles = _handles(inferred.graph.properties[n])
        for output, (shape, seen) in enumerate(zip(inferred.of(n), traced.get(node, ()), strict=False)):
            tensor = f"{node}:{output}"
            if seen is None or tensor in given or seen == shape or output in handles:
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


def _handles(node: NodeProperties) -> set[int]:
    """The outputs that are handles: resources, variants, and references to texts that name a stateful object."""
    names_state = {make_ref(DataType.STRING)} if node.op_def.record.state not in (None, State.VARIABLE) else set()
    types = {DataType.RESOURCE, DataType.VARIANT, *names_state}
    return {output for output, dtype in enumerate(node.output_types) if dtype in types}
