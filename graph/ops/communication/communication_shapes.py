"""Shape functions of collectives."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import shape_from
from ...analysis.shape_functions import ShapeContext, merge, multiplied, scalar, shape_fn, unchanged, with_rank_at_least
from ...dtypes import Shape

shape_fn(
    *("CollectiveReduce", "CollectiveReduceV2", "CollectiveReduceV3", "CollectiveAllToAllV2", "CollectiveAllToAllV3"),
    *("CollectiveBcastSendV2", "NcclAllReduce", "NcclBroadcast", "Partita>CollectivePermute"),
    "Partita>CopiedOver",
)(unchanged)
shape_fn("CollectiveInitializeCommunicator")(scalar)


@shape_fn("CollectiveAssignGroupV2")
def group(_: ShapeContext) -> Sequence[Shape]:
    """Size and key."""
    return (), ()


@shape_fn("CollectiveBcastSend", "CollectiveBcastRecv")
def declared(c: ShapeContext) -> Sequence[Shape]:
    """What the attr says."""
    return (c.attrs["shape"],)


@shape_fn("NcclReduce")
def first_of_all(c: ShapeContext) -> Sequence[Shape]:
    """The inputs have one shape, which the first may not tell."""
    return (c.inputs[0],)


shape_fn("CollectiveBcastRecvV2")(lambda c: (shape_from(c, 3),))


@shape_fn("CollectiveGather", "CollectiveGatherV2", "Partita>AllGather")
def gather(c: ShapeContext) -> Sequence[Shape]:
    """As many times the rows as there are members, where TensorFlow knows it of version 1 alone."""
    rows, rest, size = _rows(c)
    return (None if rest is None else (multiplied(rows, size), *rest),)


@shape_fn("CollectiveReduceScatterV2")
def reduce_scatter(c: ShapeContext) -> Sequence[Shape]:
    """The rows of one member, which TensorFlow leaves open; InvalidArgumentError for rows that cannot be split."""
    rows, rest, size = _rows(c)
    if rest is None:
        return (None,)
    if rows is None or size is None:
        return ((None, *rest),)
    if rows % size:
        raise InvalidArgumentError(f"{rows} rows cannot be split over {size} members")
    return ((rows // size, *rest),)


@shape_fn("Partita>AllToAllV")
def all_to_all_of_unequal_parts(c: ShapeContext) -> Sequence[Shape]:
    """Any number of rows, and a count for each member."""
    _, rest, size = _rows(c, size_port=2)
    return None if rest is None else (None, *rest), merge(c.inputs[1], (size,))


def _rows(c: ShapeContext, size_port: int = 1) -> tuple[int | None, tuple[int | None, ...] | None, int | None]:
    """Axis 0 of the input, the other axes, and the size of the group if that is known and makes sense."""
    constant = c.constant(size_port)
    size = c.attrs.get("group_size", None if constant is None or constant.ndim else int(constant))
    shape = with_rank_at_least(c.inputs[0], 1)
    size = size if size is None or size > 0 else None
    return (None, None, size) if shape is None else (shape[0], shape[1:], size)
