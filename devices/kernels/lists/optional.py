"""Optional values: some tensors, or none. An optional is never changed; its sum with another adds the tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, dtype_name
from ..carried import carried, carrying, sum_of, zeros_like
from ..registry import Construction, Kernel, kernel, outputs
from .tensor_array import compatible


@dataclass(frozen=True, slots=True)
class Optional:
    """`values` are the tensors, or None for an empty optional; `dtypes` their element types."""

    values: tuple[Array, ...] | None = None
    dtypes: tuple[DataType, ...] = ()

    def plus(self, other: Optional) -> Optional:
        """The sums of the tensors; two empty optionals give an empty one."""
        if self.values is None and other.values is None:
            return self
        if self.values is None or other.values is None:
            raise InvalidArgumentError("Cannot add optionals because one has a value and the other doesn't.")
        if len(self.values) != len(other.values):
            raise InvalidArgumentError("Cannot add optionals because they have different numbers of components.")
        sums = zip(self.values, other.values, self.dtypes, strict=True)
        return Optional(tuple(sum_of(a, b, dtype) for a, b, dtype in sums), self.dtypes)

    def zeros(self) -> Optional:
        """Zeros of the same shapes, or an empty optional."""
        if self.values is None:
            return self
        zeros = zip(self.values, self.dtypes, strict=True)
        return Optional(tuple(zeros_like(value, dtype) for value, dtype in zeros), self.dtypes)


def _optional_of(value: Array, op: str) -> Optional:
    optional = value.item() if value.size == 1 else None
    if not isinstance(optional, Optional):
        raise InvalidArgumentError(f"Input to {op} must be an OptionalVariant object.")
    return carried(value, Optional, "an optional")


@kernel("OptionalNone")
def optional_none(node: Construction) -> Kernel:
    """An empty optional."""
    nothing = carrying(Optional())
    return lambda: nothing


@kernel("OptionalFromValue")
def optional_from_value(node: Construction) -> Kernel:
    """An optional of the given tensors."""
    dtypes = node.input_types
    return lambda *values: carrying(Optional(values, dtypes))


@kernel("OptionalHasValue")
def optional_has_value(node: Construction) -> Kernel:
    """Whether the optional is not empty."""
    return lambda value: np.bool_(_optional_of(value, "OptionalHasValue").values is not None)


@kernel("OptionalGetValue")
def optional_get_value(node: Construction) -> Kernel:
    """The tensors; InvalidArgumentError if there are none, or others than the attrs declare."""
    types, asked = node.output_types, node.attrs["output_shapes"]

    def get(value: Array) -> object:
        source = _optional_of(value, "OptionalGetValue")
        if source.values is None:
            raise InvalidArgumentError("The given optional does not have a value.")
        if len(source.values) != len(types):
            raise InvalidArgumentError(f"The given optional has {len(source.values)} components, expected {len(types)}")
        for index, tensor in enumerate(source.values):
            where = f"for component {index}. Expected:"
            if source.dtypes[index] != types[index]:
                raise InvalidArgumentError(
                    f"The given optional does not match the expected type {where} "
                    f"{dtype_name(types[index])}. Actual: {dtype_name(source.dtypes[index])}."
                )
            if not compatible(asked[index], tensor.shape):
                raise InvalidArgumentError(
                    f"The given optional does not match the expected shape {where} "
                    f"{shape_text(asked[index])}. Actual: {shape_text(tensor.shape)}."
                )
        return outputs(source.values)

    return get
