"""Which ops may be computed into the buffer of an input, and by what.

Flows in: registrations by the modules `*_in_place` of the families; the properties of a node. Flows out: a function
that computes as the kernel does, bit for bit, but stores the result where `out` says. Always holds: the op works
element by element and its output has the element type of its inputs, so an element is read before it is overwritten;
half types, which go through float32, have no such function.

A fresh result of a megabyte costs two to three times what the addition itself does, most of it page faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...graph.dtypes import Array, DataType, base_type
from ...graph.ops.op_table import OpTable

if TYPE_CHECKING:
    from ...graph.ops.properties import NodeProperties

Into = Callable[..., Array]
"""takes the inputs of a node and `out`, an array of the shape and type of the result; ValueError if it does not fit"""

_FUNCTIONS: OpTable[Into] = OpTable("a function that computes in place", __package__, "_in_place", via=__name__)
_TYPES = frozenset({DataType.FLOAT, DataType.DOUBLE})


def in_place(op: str, function: Into) -> None:
    """Registers what computes an op into a given buffer; AlreadyExistsError if it has such a function."""
    _FUNCTIONS.add(op, function)


def into(properties: NodeProperties) -> Into | None:
    """The function for nodes of this kind, None where there is none: channels, for one, have to be the last axis."""
    function = _FUNCTIONS.get(properties.op)
    if properties.attrs.get("data_format") == b"NCHW":
        return None
    types = {base_type(t) for t in (*properties.input_types, *properties.output_types)}
    return function if function is not None and len(types) == 1 and types <= _TYPES else None
