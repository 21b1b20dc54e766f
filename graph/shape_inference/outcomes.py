"""What a node outputs, from what is known of its inputs: shapes, small values, and the shapes behind handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..dtypes import Array, numpy_dtype
from ..ops.properties import NodeProperties
from ..ops.record import ReadsHandle
from .calls import Shapes
from .op_shapes import passes_handle_on, shapes_behind, shapes_of, shapes_through_handle
from .tensor_facts import TensorFacts
from .values import can_evaluate, evaluate, sizes_value

NOTHING: Mapping[int, Array] = {}


@dataclass(slots=True)
class Outcome:
    """The shapes of all outputs, their values as far as they are followed, and the shapes behind the handle they are.

    `contradicts`: the op's rule refused the inputs, whose shapes were assumed.
    """

    shapes: Shapes
    values: Sequence[Array | None] = field(default=())
    behind: Shapes | None = None
    contradicts: bool = False


def passed_on(facts: TensorFacts, source: int) -> Outcome:
    """The outcome of a receive: everything that is known of the tensor that is sent."""
    return Outcome((facts.shapes[source],), (facts.values[source],), facts.behind[source])


def outcome_of(
    properties: NodeProperties,
    inputs: Sequence[int],
    facts: TensorFacts,
    constants: Mapping[int, Array] = NOTHING,
    *,
    is_step: bool,
) -> Outcome:
    """The outcome for inputs with these facts; `constants` are known values beyond those that are followed.

    In one step more is known than of every step, see `op_shapes.py`.

    Raises the errors of shape functions, mostly InvalidArgumentError.
    """
    shapes = tuple([facts.shapes[number] for number in inputs])
    known = [facts.values[number] for number in inputs]
    values: Sequence[Array | None] = evaluate(properties, shapes, known) if can_evaluate(properties.op) else ()
    behind = shapes_behind(properties, is_step=is_step)
    read = facts.behind[inputs[0]] if inputs and behind is None else None
    if read is not None:
        if properties.op_def.record.reads_handle is ReadsHandle.SHAPE and read[0] is not None:
            values = (sizes_value(read[0], numpy_dtype(properties.output_types[0])),)
        through = shapes_through_handle(properties, shapes, read, known)
        if through is not None:
            return Outcome(through, values)
        behind = read if passes_handle_on(properties) else None
    values_read = {i: value for i, value in enumerate(known) if value is not None}
    return Outcome(shapes_of(properties, shapes, {**values_read, **constants}), values, behind)
