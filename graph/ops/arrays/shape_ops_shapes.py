"""Shape functions of the ops that read shapes, change shapes, permute axes, and make tensors from sizes.

Only the sizes that depend on an unknown value are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ....errors import InvalidArgumentError
from ...analysis.dims import (
    expanded,
    integer,
    integers,
    length,
    partly,
    range_length,
    range_value,
    reshaped,
    shape_from,
    shape_text,
    squeezed,
)
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    multiplied,
    num_elements,
    scalar,
    shape_fn,
    with_rank,
    with_size,
)
from ...dtypes import Shape

shape_fn("Rank", "Size")(scalar)


@shape_fn("Shape", "ShapeN")
def shape(c: ShapeContext) -> Sequence[Shape]:
    """A vector as long as the input has axes."""
    return tuple((None if x is None else len(x),) for x in c.inputs)


@shape_fn("Reshape")
def reshape(c: ShapeContext) -> Sequence[Shape]:
    """The requested sizes; one of -1 is inferred where all of the input's sizes are known."""
    target = shape_from(c, 1)
    source = tuple(size for size in c.inputs[0] or (None,) if size is not None)
    if c.inputs[0] is None or len(source) < len(c.inputs[0]):
        return (target,)  # without all sizes of the input nothing can be inferred
    if target is None or target.count(None) > 1:
        return (target,)
    _check_count(prod(source), target)
    return (reshaped(source, [-1 if size is None else size for size in target]),)


def _check_count(elements: int, target: tuple[int | None, ...]) -> None:
    """InvalidArgumentError for another number of elements than the target has; the kernel words it otherwise."""
    known = prod(size for size in target if size is not None)
    if None not in target and elements != known:
        wanted = f"shape {shape_text(target)} ({known} elements)"
        raise InvalidArgumentError(f"Cannot reshape a tensor with {elements} elements to {wanted}")
    if None in target and known and elements % known:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {known} but is {elements}")


@shape_fn("Squeeze")
def squeeze(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape without sizes of one."""
    source = c.inputs[0]
    return (None if source is None else squeezed(source, c.attrs["squeeze_dims"]),)


@shape_fn("ExpandDims")
def expand_dims(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape with a size of one added; unknown while the axis is unknown, as in TensorFlow."""
    source, axis = c.inputs[0], integer(c, 1)
    if c.constant(1) is not None and num_elements(c.inputs[1]) != 1:
        raise InvalidArgumentError("'dim' input must be a tensor with a single value")
    return (None if source is None or axis is None else expanded(source, axis),)


@shape_fn("BroadcastTo")
def broadcast_to(c: ShapeContext) -> Sequence[Shape]:
    """The requested sizes, with which the input must be compatible."""
    with_rank(c.inputs[1], 1)
    target, source = shape_from(c, 1), c.inputs[0]
    if target is None or source is None:
        return (target,)
    if len(source) > len(target):
        raise InvalidArgumentError(
            f"Rank of input ({len(source)}) must be no greater than rank of output shape ({len(target)})."
        )
    broadcast(source, target)
    padded = (1,) * (len(target) - len(source)) + source
    return (tuple(have if size is None and have != 1 else size for have, size in zip(padded, target, strict=True)),)


@shape_fn("BroadcastArgs")
def broadcast_args(c: ShapeContext) -> Sequence[Shape]:
    """A vector as long as the longer of the two shapes."""
    a, b = length(c, 0), length(c, 1)
    return ((None if a is None or b is None else max(a, b),),)


@shape_fn("Fill")
def fill(c: ShapeContext) -> Sequence[Shape]:
    """The requested sizes."""
    with_rank(c.inputs[0], 1)
    with_rank(c.inputs[1], 0)
    return (shape_from(c, 0),)


def _check_scalars(c: ShapeContext, names: Sequence[str]) -> None:
    for name, shape in zip(names, c.inputs, strict=True):
        try:
            with_rank(shape, 0)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message}\n\t for '{name}'") from None


@shape_fn("Range")
def make_range(c: ShapeContext) -> Sequence[Shape]:
    """A vector; its length follows from the three values."""
    _check_scalars(c, ("start", "limit", "delta"))
    values = [c.constant(i) for i in range(3)]
    if any(value is None for value in values):
        return ((None,),)
    start, limit, delta = (range_value(value) for value in values if value is not None)
    if delta == type(delta)(0):
        raise InvalidArgumentError("Requires delta != 0")
    return ((range_length(start, limit, delta),),)


@shape_fn("LinSpace")
def linspace(c: ShapeContext) -> Sequence[Shape]:
    """A vector of `num` values."""
    _check_scalars(c, ("start", "stop", "num"))
    num = integer(c, 2)
    if num is not None and num <= 0:
        raise InvalidArgumentError(f"Requires num > 0: {num}")
    return ((num,),)


@shape_fn("Tile")
def tile(c: ShapeContext) -> Sequence[Shape]:
    """Each size times its count; only the rank is known while the counts are not."""
    times, source, rank = partly(c, 1), c.inputs[0], length(c, 1)
    if source is not None and rank is not None:
        with_rank((None,) * rank, len(source))  # TensorFlow compares the number of counts with the rank
    if times is None:
        rank = len(source) if rank is None and source is not None else rank
        return (None if rank is None else (None,) * rank,)
    known = with_rank(source, len(times))
    return (tuple(multiplied(size, count) for size, count in zip(known, times, strict=True)),)


@shape_fn("TileGrad")
def tile_grad(c: ShapeContext) -> Sequence[Shape]:
    """The sizes that Tile repeated."""
    times, source = integers(c, 1), c.inputs[0]
    if times is None or source is None:
        return (None if source is None else (None,) * len(source),)
    sizes = zip(with_rank(source, len(times)), times, strict=True)
    return (tuple(None if size is None or count < 1 else size // count for size, count in sizes),)


@shape_fn("Transpose", "ConjugateTranspose")
def transpose(c: ShapeContext) -> Sequence[Shape]:
    """The input's sizes in the order of the permutation; only the rank is known while the permutation is not."""
    perm, source = integers(c, 1), c.inputs[0]
    count = num_elements(c.inputs[1])  # TensorFlow checks that it is a vector only in the run
    rank = count if source is None else with_size(count, len(source))
    if rank is None:
        return (None,)
    known = with_rank(source, rank)
    if perm is None:
        return (known if rank < 2 else (None,) * rank,)
    if len(perm) != rank:
        raise InvalidArgumentError(f"transpose expects a vector of size {rank}. But input(1) has {len(perm)} values")
    if sorted(axis + rank if axis < 0 else axis for axis in perm) != list(range(rank)):
        raise InvalidArgumentError(f"perm {perm} is no permutation of the axes of {shape_text(source)}")
    return (tuple(known[axis] for axis in perm),)


@shape_fn("InvertPermutation")
def invert_permutation(c: ShapeContext) -> Sequence[Shape]:
    """A vector as long as the input."""
    return (with_rank(c.inputs[0], 1),)


@shape_fn("ConcatOffset")
def concat_offset(c: ShapeContext) -> Sequence[Shape]:
    """One vector for each shape, as long as that; TensorFlow checks the rest when the op runs."""
    return c.inputs[1:]
