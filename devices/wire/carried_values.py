"""Values that variants carry, taken apart into integers and items, and put together again.

    TensorList of two float32 [2], at most 5 elements     integers 1 5 1 2 (type, limit, rank, sizes)      2 items
    Optional of a float32 and an int32                    integers 1 3                                     2 items
    Optional of nothing                                   no integers                                      none

They are values: what arrives behaves as what was sent. Objects that a process keeps (iterators) are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ...graph.dtypes import Array, DataType, Dims, Shape
from ..kernels.lists.optional import Optional
from ..kernels.lists.tensor_list import TensorList
from ..kernels.lists.tensor_map import MapEntry, TensorMap
from ..kernels.sparse.csr_matrix import CSRMatrix, CsrRows
from ..kernels.sparse.ragged_variants import RaggedValue
from ..kernels.sparse.serialized_sparse import SerializedPart
from .sections import damaged

Items = Sequence[Any]  # Any: tensors, of any type


class CarriedForm(NamedTuple):
    """How values of one class travel; `together` raises DataLossError for what no value is taken apart into."""

    apart: Callable[[Any], tuple[Sequence[int], Items]]  # Any: a value of the class
    together: Callable[[Sequence[int], Items], object]


def _shape_numbers(shape: Shape) -> list[int]:
    """The rank, -1 for none, and the sizes, -1 for those that are not known."""
    return [-1] if shape is None else [len(shape), *(-1 if size is None else size for size in shape)]


def _shape(numbers: Sequence[int]) -> Shape:
    if list(numbers) == [-1]:
        return None
    if numbers[0] != len(numbers) - 1 or min(numbers) < -1:
        raise damaged("a list has a wrong shape of elements")
    return tuple([None if size < 0 else size for size in numbers[1:]])


def _types(numbers: Sequence[int]) -> tuple[DataType, ...]:
    try:
        return tuple(map(DataType, numbers))
    except ValueError:
        raise damaged(f"there is no element type among the numbers {list(numbers)[:8]}") from None


def _tensors(items: Items) -> Items:
    if not all(isinstance(item, np.ndarray | np.generic) for item in items):
        raise damaged("what should be a tensor inside a value is something else")
    return items


def _list_apart(value: TensorList) -> tuple[Sequence[int], Items]:
    return [value.dtype, value.limit, *_shape_numbers(value.shape)], value.items


def _list_together(numbers: Sequence[int], items: Items) -> TensorList:
    if len(numbers) < 3:
        raise damaged("a list has no type, limit or shape")
    _tensors([item for item in items if item is not None])
    dtype, shape, storage = _types(numbers[:1])[0], _shape(numbers[2:]), list(items)
    return TensorList(dtype, shape, storage, len(storage), numbers[1])


def _optional_apart(value: Optional) -> tuple[Sequence[int], Items]:
    # One that has a value of no tensors begins with the type 0, which no tensor has.
    return ([], []) if value.values is None else ([DataType.INVALID, *value.dtypes], value.values)


def _optional_together(numbers: Sequence[int], items: Items) -> Optional:
    if not numbers and not items:
        return Optional()
    if len(numbers) != len(items) + 1:
        raise damaged("an optional has other numbers of types and of tensors")
    return Optional(tuple(_tensors(items)), _types(numbers[1:]))


def _ragged_together(numbers: Sequence[int], items: Items) -> RaggedValue:
    arrays = _arrays(items)
    if len(numbers) != 1 or not arrays or any(splits.ndim != 1 or not splits.size for splits in arrays[:-1]):
        raise damaged("a ragged tensor has no type or no values, or wrong splits")
    return RaggedValue(arrays[:-1], arrays[-1], _types(numbers)[0])


def _arrays(items: Items) -> tuple[Array, ...]:
    return tuple(map(np.asarray, _tensors(items)))


def _csr_apart(value: CSRMatrix) -> tuple[Sequence[int], Items]:
    items = [part for rows in value.parts for part in (rows.row_ptrs, rows.columns, rows.values)]
    return [value.dtype, *value.shape], items


def _csr_together(numbers: Sequence[int], items: Items) -> CSRMatrix:
    arrays, shape = _arrays(items), tuple(numbers[1:])
    if len(shape) not in (2, 3) or min(shape) < 0 or len(arrays) != 3 * (shape[0] if len(shape) == 3 else 1):
        raise damaged("a sparse matrix has other numbers of sizes and of parts")
    parts = tuple(CsrRows(*arrays[i : i + 3]) for i in range(0, len(arrays), 3))
    for part in parts:
        _check_rows(part, shape)
    return CSRMatrix(_types(numbers[:1])[0], shape, parts)


def _check_rows(part: CsrRows, shape: Dims) -> None:
    """DataLossError unless the rows begin one behind the other, and the columns are there."""
    pointers, columns, values = part.row_ptrs, part.columns, part.values
    integers = pointers.dtype.kind == columns.dtype.kind == "i"
    if not integers or (pointers.ndim, columns.ndim, values.ndim) != (1, 1, 1) or len(pointers) != shape[-2] + 1:
        raise damaged("the rows of a sparse matrix have wrong types or shapes")
    ends = pointers[0] == 0 and pointers[-1] == len(columns) == len(values) and bool((np.diff(pointers) >= 0).all())
    if not ends or (len(columns) > 0 and (columns.min() < 0 or columns.max() >= shape[-1])):
        raise damaged("the rows of a sparse matrix are not inside it")


def _map_apart(value: TensorMap) -> tuple[Sequence[int], Items]:
    entries = value.entries.values()
    types = [dtype for entry in entries for dtype in (entry.key_dtype, entry.dtype)]
    return types, [tensor for entry in entries for tensor in (entry.key, entry.value)]


def _map_together(numbers: Sequence[int], items: Items) -> TensorMap:
    if len(numbers) != len(items) or len(items) % 2:
        raise damaged("a map has other numbers of types and of tensors")
    return TensorMap.of(_entries(_types(numbers), _arrays(items)))


def _entries(types: Sequence[DataType], arrays: Sequence[Array]) -> Iterator[MapEntry]:
    for i in range(0, len(arrays), 2):
        key = arrays[i]
        if key.dtype == object and not all(isinstance(element, bytes) for element in key.flat):
            raise damaged("a key of a map is no string")
        yield MapEntry(key, types[i], arrays[i + 1], types[i + 1])


def _held_together(numbers: Sequence[int], items: Items) -> SerializedPart:
    if len(numbers) != 1 or len(items) != 1:
        raise damaged("a serialised tensor has other numbers of types and of tensors")
    return SerializedPart(_arrays(items)[0], _types(numbers)[0])


FORMS: Final[dict[type, CarriedForm]] = {
    TensorList: CarriedForm(_list_apart, _list_together),
    Optional: CarriedForm(_optional_apart, _optional_together),
    RaggedValue: CarriedForm(lambda value: ([value.dtype], [*value.splits, value.values]), _ragged_together),
    CSRMatrix: CarriedForm(_csr_apart, _csr_together),
    TensorMap: CarriedForm(_map_apart, _map_together),
    SerializedPart: CarriedForm(lambda value: ([value.dtype], [value.tensor]), _held_together),
}
"""by class; the order is part of the format"""
