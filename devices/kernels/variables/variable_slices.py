"""Assigning to a strided slice of a variable, reference or resource: `v[begin:end:stride].assign(value)`.

The slice is that of StridedSlice, and the value is broadcast to it, as TensorStridedSliceUpdate does with a tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, dtype_name
from ...state import Variable
from ..arrays.slicing import overwriting
from ..registry import Construction, Kernel, kernel
from .variables import updating


@kernel("StridedSliceAssign", "ResourceStridedSliceAssign")
def strided_slice_assign(node: Construction) -> Kernel:
    """Puts a value into a slice of a variable; a refused one leaves the variable unchanged."""
    overwritten, dtype = overwriting(node.attrs), node.attrs["T"]

    def update(variables: Sequence[Variable], others: Sequence[Array]) -> None:
        (variable,), (begin, end, strides, value) = variables, others
        if variable.dtype != dtype:
            raise InvalidArgumentError(
                "Trying to assign variable with wrong dtype. "
                f"Expected {dtype_name(variable.dtype)} got {dtype_name(dtype)}"
            )
        variable.value = overwritten(variable.read(), begin, end, strides, value)

    return updating(node, update)
