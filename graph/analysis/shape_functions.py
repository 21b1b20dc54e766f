"""The table of shape functions, and arithmetic on partly known shapes that they share.

A shape function gets the shapes and constant values of a node's inputs as far as they are known, and its attrs; it
returns one shape per flattened output. A shape is a tuple of sizes, None for an unknown size; None for an unknown rank.
Knowing more about the inputs must never contradict a result that was computed knowing less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InvalidArgumentError
from ..dtypes import Array, DataType, Shape
from ..ops.op_table import FAMILIES, OpTable
from ..ops.registry import PRODUCER


@dataclass(slots=True)
class ShapeContext:
    """The arguments of a shape function.

    `inputs` has one shape per flattened data input; `constants` the values of inputs that are known before the run;
    `partials` the partly known ones, with None for unknown elements. `producer` is the version of the graph.
    """

    op: str
    attrs: Mapping[str, Any]  # decoded attr values: their type depends on the attr
    inputs: tuple[Shape, ...]
    input_types: tuple[DataType, ...] = ()
    output_types: tuple[DataType, ...] = ()
    constants: Mapping[int, Array] = field(default_factory=dict)
    partials: Mapping[int, tuple[int | None, ...]] = field(default_factory=dict)
    producer: int = PRODUCER

    def constant(self, index: int) -> Array | None:
        """The value of input `index` if it is known, else None."""
        return self.constants.get(index)


ShapeFunction = Callable[[ShapeContext], Sequence[Shape]]

_FUNCTIONS: OpTable[ShapeFunction] = OpTable("a shape function", FAMILIES, "_shapes", via=__name__)


def shape_fn(*ops: str) -> Callable[[ShapeFunction], ShapeFunction]:
    """Registers the decorated shape function for each of `ops`; AlreadyExistsError for an op that has one."""

    def register(function: ShapeFunction) -> ShapeFunction:
        for op in ops:
            _FUNCTIONS.add(op, function)
        return function

    return register


def lookup(op: str) -> ShapeFunction | None:
    """The shape function of `op`, or None if it has none."""
    return _FUNCTIONS.get(op)


def is_loaded(op: str) -> bool:
    """Whether `lookup` imports nothing for that op."""
    return _FUNCTIONS.has_looked(op)


def table() -> OpTable[ShapeFunction]:
    """All shape functions, by op."""
    return _FUNCTIONS


def registered_ops() -> frozenset[str]:
    """Names of all ops that have a shape function."""
    return frozenset(_FUNCTIONS)


def merge_dims(a: int | None, b: int | None) -> int | None:
    """The size that matches both; InvalidArgumentError when two known sizes differ."""
    if a is not None and b is not None and a != b:
        raise InvalidArgumentError(f"Dimensions must be equal, but are {a} and {b}")
    return b if a is None else a


def with_size(size: int | None, wanted: int) -> int:
    """The wanted size; InvalidArgumentError if `size` is known to be another."""
    if size is not None and size != wanted:
        raise InvalidArgumentError(f"Dimension must be {wanted} but is {size}")
    return wanted


def merge(a: Shape, b: Shape) -> Shape:
    """The shape that matches both; InvalidArgumentError when ranks or known sizes differ."""
    if a is None or b is None:
        return b if a is None else a
    if a == b:
        return a
    if len(a) != len(b):
        raise InvalidArgumentError(f"Shapes must be equal rank, but are {len(a)} and {len(b)}")
    for axis, (x, y) in enumerate(zip(a, b, strict=True)):
        if x is not None and y is not None and x != y:
            raise InvalidArgumentError(
                f"Dimension {axis} in both shapes must be equal, but are {x} and {y}. "
                f"Shapes are {shape_text(a)} and {shape_text(b)}."
            )
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


def shape_text(shape: Sequence[int | None] | None) -> str:
    """A shape as TensorFlow writes it: `[2,?,3]`, `<unknown>` for an unknown rank."""
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def with_rank(shape: Shape, rank: int) -> tuple[int | None, ...]:
    """`shape` if it has that rank, unknown sizes for an unknown rank; InvalidArgumentError otherwise."""
    if shape is None:
        return (None,) * rank
    if len(shape) != rank:
        raise InvalidArgumentError(f"Shape must be rank {rank} but is rank {len(shape)}")
    return shape


def with_rank_at_least(shape: Shape, rank: int) -> Shape:
    """`shape`; InvalidArgumentError if it is known to have a smaller rank."""
    if shape is not None and len(shape) < rank:
        raise InvalidArgumentError(f"Shape must be at least rank {rank} but is rank {len(shape)}")
    return shape


def with_rank_at_most(shape: Shape, rank: int) -> Shape:
    """`shape`; InvalidArgumentError if it is known to have a greater rank."""
    if shape is not None and len(shape) > rank:
        raise InvalidArgumentError(f"Shape must be at most rank {rank} but is rank {len(shape)}")
    return shape


def _broadcast_dims(x: int | None, y: int | None) -> int | None:
    if x == 1:
        return y
    if y == 1:
        return x
    if x is None or y is None:
        known = x or y  # a known size above one must be the result: the other is 1 or equal
        return known or None  # TensorFlow does not do so for a known 0
    return merge_dims(x, y)


def broadcast(a: Shape, b: Shape) -> Shape:
    """Shape of an elementwise result: sizes align from the right, 1 stretches; InvalidArgumentError if they clash."""
    if a is None or b is None:
        return None
    rank = max(len(a), len(b))
    padded = (1,) * (rank - len(a)) + a
    right = (1,) * (rank - len(b)) + b
    return tuple(_broadcast_dims(x, y) for x, y in zip(padded, right, strict=True))


def num_elements(shape: Shape) -> int | None:
    """Number of elements, or None if a size is unknown and none is zero."""
    if shape is None:
        return None
    if 0 in shape:
        return 0
    count = 1
    for size in shape:
        if size is None:
            return None
        count *= size
    return count


def multiplied(a: int | None, b: int | None) -> int | None:
    """The product of two sizes, None if it is unknown; zero times an unknown size is zero."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; InvalidArgumentError unless -rank <= axis < rank."""
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"axis {axis} is out of range [-{rank}, {rank})")
    return axis + rank if axis < 0 else axis


def unchanged(c: ShapeContext) -> Sequence[Shape]:
    """Every output has the shape of the first input."""
    return (c.inputs[0],) * len(c.output_types)


def scalar(c: ShapeContext) -> Sequence[Shape]:
    """Every output is a scalar."""
    return ((),) * len(c.output_types)


def no_outputs(_: ShapeContext) -> Sequence[Shape]:
    """For an op without outputs."""
    return ()


def unknown(c: ShapeContext) -> Sequence[Shape]:
    """Every output has unknown rank."""
    return (None,) * len(c.output_types)


def broadcast_binary(c: ShapeContext) -> Sequence[Shape]:
    """The two inputs broadcast against each other."""
    return (broadcast(c.inputs[0], c.inputs[1]),)
