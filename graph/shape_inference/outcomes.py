"""What a node outputs, from what is known of its inputs: shapes, small values, and the shapes behind handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..analysis.dims import common_shape
from ..analysis.value_rules import evaluate, follows_values, sizes_value
from ..dtypes import Array, DataType, Shape, Shapes, numpy_dtype
from ..ops.properties import NodeProperties
from ..ops.record import ReadsHandle
from .calls import Behind, TensorShapes
from .op_shapes import (
    completed,
    in_a_step,
    passes_handle_on,
    shapes_behind,
    shapes_of,
    shapes_through_handle,
    with_assumed,
)
from .tensor_facts import TensorFacts
from .tensor_lists import joined_list, lists_out, read_from_list

NOTHING: Mapping[int, Array] = {}


@dataclass(slots=True)
class InferenceOutcome:
    """The shapes of all outputs, their values as far as they are followed, and the shapes behind the handles they are.

    `contradicts`: the op's rule refused the inputs, whose shapes were assumed. `before` are the shapes before sizes
    were taken from what the graph says of them, if any were.
    """

    shapes: Shapes
    values: Sequence[Array | None] = field(default=())
    behind: Behind = ()
    contradicts: bool = False
    before: Shapes | None = None

    def complete_in_a_step(self, properties: NodeProperties) -> None:
        """Completes the shapes by what is known of one step, and by what the graph says to take on the clock."""
        if all(shape is not None and None not in shape for shape in self.shapes):
            return
        known = in_a_step(properties, self.shapes, self.values)
        self.shapes = with_assumed(properties, known)
        self.before = known if self.shapes is not known else None


def passed_on(facts: TensorFacts, source: int) -> InferenceOutcome:
    """The outcome of a receive: everything that is known of the tensor that is sent."""
    return InferenceOutcome((facts.shapes[source],), (facts.values[source],), (facts.behind[source],))


def completed_behind(outcome: InferenceOutcome, put: Shapes) -> Behind:
    """What is behind the handles that a node makes: what it states, completed by what is put in."""
    stated = next((shapes for shapes in outcome.behind if shapes is not None and len(shapes) == len(put)), None)
    return (put if stated is None else tuple(map(completed, stated, put)),) * len(outcome.shapes)


def handle_of_any(dtype: DataType, behind: Sequence[Shapes | None]) -> Shapes | None:
    """What is behind a handle that may be any of these: lists are joined, others are alike as far as they are known."""
    if dtype is DataType.VARIANT:
        return joined_list(behind)
    known = {shapes for shapes in behind if shapes is not None}
    return known.pop() if len(known) == 1 else None


def common_tensors(properties: NodeProperties, choices: Sequence[TensorShapes]) -> TensorShapes:
    """What several results of functions have in common, one of which a node outputs; there is at least one."""
    shapes = zip(*[choice.shapes for choice in choices], strict=True)
    behind = zip(properties.output_types, *[choice.behind for choice in choices], strict=True)
    return TensorShapes(
        tuple([common_shape(column) for column in shapes]),
        tuple([handle_of_any(dtype, column) for dtype, *column in behind]),
    )


def with_promised(properties: NodeProperties, known: TensorShapes) -> InferenceOutcome:
    """The outcome of a node that calls functions, with the shapes that its attrs promise."""
    promised: Sequence[Shape] = properties.attrs.get("output_shapes") or ()
    shapes = known.shapes
    if len(promised) == len(shapes):
        shapes = tuple(map(_refined, shapes, promised))
    return InferenceOutcome(shapes, behind=known.behind)


def _refined(shape: Shape, promised: Shape) -> Shape:
    """A shape with the sizes that only the promise has."""
    if shape is None or promised is None or len(shape) != len(promised):
        return promised if shape is None else shape
    return tuple(b if a is None else a for a, b in zip(shape, promised, strict=True))


def outcome_of(
    properties: NodeProperties,
    inputs: Sequence[int],
    facts: TensorFacts,
    constants: Mapping[int, Array] = NOTHING,
    *,
    is_step: bool,
    producer: int,
) -> InferenceOutcome:
    """The outcome for inputs with these facts; `constants` are known values beyond those that are followed.

    In one step more is known than of every step, see `op_shapes.py`. `producer` is the version of the graph.

    Raises the errors of shape functions, mostly InvalidArgumentError.
    """
    shapes = tuple([facts.shapes[number] for number in inputs])
    known = [facts.values[number] for number in inputs]
    values: Sequence[Array | None] = evaluate(properties, shapes, known) if follows_values(properties) else ()
    values_read = {**{i: value for i, value in enumerate(known) if value is not None}, **constants}
    stated = shapes_behind(properties, shapes, is_step=is_step)
    read = (facts.behind[inputs[0]] or None) if inputs and stated is None else None
    if read is not None and properties.op_def.record.reads_handle is ReadsHandle.SHAPE and read[0] is not None:
        values = (sizes_value(read[0], numpy_dtype(properties.output_types[0])),)
    if DataType.VARIANT in (*properties.input_types, *properties.output_types):
        own = shapes_of(properties, shapes, values_read, producer)
        through = own if read is None else read_from_list(properties, own, shapes, read, known)
        behind = tuple([facts.behind[number] for number in inputs])
        lists = lists_out(properties, shapes, behind, values_read)
        if not is_step:  # TensorFlow's import knows what is stated of elements, not what is written
            lists = tuple([list_ and list_[:1] for list_ in lists])
        return InferenceOutcome(through, values, lists)
    if read is not None:
        through_handle = shapes_through_handle(properties, shapes, read, known)
        if through_handle is not None:
            return InferenceOutcome(through_handle, values)
        stated = read if passes_handle_on(properties) else None
    shapes = shapes_of(properties, shapes, values_read, producer)
    return InferenceOutcome(shapes, values, (stated,) * len(properties.output_types))
