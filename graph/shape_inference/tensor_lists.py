"""Tensor lists: the shapes of the elements, which a step follows from what is written to what is read.

A list states a shape, mostly with unknown sizes, and lists that are written have a shape that all elements match. What
is behind a list is the first, and the second once something is written; what is read matches both:

    r = TensorListReserve([-1, 3], 5)      behind (?, 3)
    s = TensorListSetItem(r, 0, x)         behind (?, 3), (4, 3)     x has shape (4, 3)
    y = TensorListStack(s, [-1, 3])        shape (5, 4, 3)

A loop that writes has both as its list. So they are joined: r has no element yet, and those of s are (4, 3). An element
of another shape makes sizes unknown, in the pass of the loop that finds it.

The elements of a list may be lists, as in the gradient of a loop in a loop: what is behind them comes third and fourth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..analysis.dims import common_shape, shape_from
from ..dtypes import Array, DataType, Shape, Shapes
from ..ops.properties import NodeProperties
from ..ops.record import ReadsHandle, WritesList
from .calls import Behind
from .op_shapes import completed, context_of, shapes_through_handle


def joined_list(lists: Sequence[Shapes | None]) -> Shapes | None:
    """What is behind a tensor that may be any of these lists; None if that of one is unknown, or there is none.

    An element of a list of lists that nobody has written yet has nothing behind it, which is no reason to know less.
    """
    known = [behind for behind in lists if behind]
    if not known or None in lists:
        return () if lists and None not in lists else None
    written = [behind[1] for behind in known if len(behind) > 1]
    inner = [behind[2:] for behind in known if len(behind) > 2]
    stated = common_shape([behind[0] for behind in known])
    return stated, *([common_shape(written)] if written else []), *(joined_list(inner) or ())


def is_nested(behind: Shapes) -> bool:
    """Whether the elements of a list are lists, of whose elements something is known."""
    return len(behind) > 2


def lists_out(properties: NodeProperties, inputs: Shapes, behind: Behind, values: Mapping[int, Array]) -> Behind:
    """By output what is behind the list that it is, for inputs of these shapes, with these known values."""
    record, types = properties.op_def.record, properties.output_types
    if DataType.VARIANT not in types or record.calls is not None:
        return ()
    if record.reads_handle is not None:
        element = None if behind[0] is None or types[-1] is not DataType.VARIANT else behind[0][2:]
        return {ReadsHandle.LAST: (behind[0], element), ReadsHandle.VALUE: (element,)}.get(record.reads_handle, ())
    if record.regroups:
        return behind
    if record.element_shape_input >= 0:
        whole: Shapes | None = _stated(properties, inputs, values)
    elif record.writes_list is not None:
        whole = behind[0]
    else:
        lists = zip(behind, properties.input_types, strict=True)
        whole = joined_list([shapes for shapes, dtype in lists if dtype is DataType.VARIANT])
    if whole and record.writes_list is not None:
        written = _element(record.writes_list, inputs[record.written_input])
        whole = joined_list([whole, (whole[0], written, *(behind[record.written_input] or ()))])
    return tuple([whole if dtype is DataType.VARIANT else None for dtype in types])


def _stated(properties: NodeProperties, inputs: Shapes, values: Mapping[int, Array]) -> Shapes:
    """Of a new list. Elements that nobody writes are zeros, of the stated shape if all its sizes are known."""
    index = properties.op_def.record.element_shape_input
    is_any = inputs[index] == ()  # the scalar -1
    stated = None if is_any else shape_from(context_of(properties, inputs, values), index)
    return (stated,) if stated is None or None in stated else (stated, stated)


def _element(writes: WritesList, written: Shape) -> Shape:
    if writes is WritesList.ELEMENT or not written:
        return written
    return written[1:] if writes is WritesList.ROWS else (None, *written[1:])


def read_from_list(
    properties: NodeProperties, shapes: Shapes, inputs: Shapes, behind: Shapes, values: Sequence[Array | None]
) -> Shapes:
    """The shapes that a node's rule gives its outputs, completed by what is behind the list that it reads."""
    states = (
        len(behind) == 1 or properties.op_def.record.reads_handle is ReadsHandle.SHAPE
    )  # a run reads what is stated
    element = behind[0] if states else completed(*behind[:2])
    read = shapes_through_handle(properties, inputs, (element,), values)
    return shapes if read is None else tuple(map(completed, shapes, read))
