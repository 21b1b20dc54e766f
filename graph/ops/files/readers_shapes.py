"""Shape functions of readers. Handles are scalars; in the first version of the ops vectors of two strings."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, scalar, shape_fn, with_rank
from ...dtypes import Shape

_KINDS = ("WholeFileReader", "IdentityReader", "TextLineReader", "FixedLengthRecordReader", "TFRecordReader")

shape_fn(*(f"{kind}V2" for kind in _KINDS))(scalar)


@shape_fn(*_KINDS)
def first_reader(c: ShapeContext) -> Sequence[Shape]:
    """A handle of two strings."""
    return ((2,),)


def _check_handles(c: ShapeContext, count: int) -> None:
    """InvalidArgumentError unless the first inputs may be handles of the version of the op."""
    for shape in c.inputs[:count]:
        if c.op.endswith("V2"):
            with_rank(shape, 0)
        else:
            merge_dims(with_rank(shape, 1)[0], 2)


@shape_fn("ReaderRead", "ReaderReadV2")
def read(c: ShapeContext) -> Sequence[Shape]:
    """A key and a value."""
    _check_handles(c, 2)
    return ((), ())


@shape_fn("ReaderReadUpTo", "ReaderReadUpToV2")
def read_up_to(c: ShapeContext) -> Sequence[Shape]:
    """As many keys as values."""
    _check_handles(c, 2)
    with_rank(c.inputs[2], 0)
    return ((None,), (None,))


@shape_fn(
    *("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompleted"),
    *("ReaderNumWorkUnitsCompletedV2", "ReaderSerializeState", "ReaderSerializeStateV2"),
)
def state_of(c: ShapeContext) -> Sequence[Shape]:
    """A number, or the serialised state."""
    _check_handles(c, 1)
    return ((),)


@shape_fn("ReaderReset", "ReaderResetV2", "ReaderRestoreState", "ReaderRestoreStateV2")
def set_state(c: ShapeContext) -> Sequence[Shape]:
    """No output; a state is one string."""
    _check_handles(c, 1)
    for shape in c.inputs[1:]:
        with_rank(shape, 0)
    return ()
