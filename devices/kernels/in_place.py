"""Which ops may be computed into the buffer of an input, and the functions that do so.

A function computes as the kernel does, bit for bit, but stores the result in `out`. The op must be elementwise with one
element type for inputs and output, so that each element is read before it is overwritten; half types, which are
computed in float32, have no such function.

A new array of a megabyte costs two to three times as much as the addition itself, most of it page faults. The modules
`*_in_place` of the families register the functions.
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
    """Registers the function that computes an op into a given buffer; AlreadyExistsError if the op has one."""
    _FUNCTIONS.add(op, function)


def into(properties: NodeProperties) -> Into | None:
    """The function for nodes of this kind, or None: bias addition, for one, needs the channels on the last axis."""
    function = _FUNCTIONS.get(properties.op)
    if properties.attrs.get("data_format") == b"NCHW":
        return None
    types = {base_type(t) for t in (*properties.input_types, *properties.output_types)}
    return function if function is not None and len(types) == 1 and types <= _TYPES else None
