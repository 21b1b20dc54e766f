"""Values as kernels have them, drawn: scalars and arrays of all element types and memory orders, strings, handles,
lists and other carried values inside each other; and the comparison of what arrived with what was sent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partita.devices.kernels.carried import carrying
from partita.devices.kernels.lists.optional import Optional
from partita.devices.kernels.lists.tensor_list import TensorList
from partita.devices.kernels.lists.tensor_map import MapEntry, TensorMap
from partita.devices.kernels.sparse.csr_matrix import CSRMatrix, CsrRows
from partita.devices.kernels.sparse.ragged_variants import RaggedValue
from partita.devices.kernels.sparse.serialized_sparse import SerializedPart
from partita.devices.state import ResourceHandle, handle_array
from partita.devices.wire.element_types import BOOL, DTYPES
from partita.graph.dtypes import Array, DataType

Values = st.SearchStrategy[Any]  # Any: values of any kind
FLOAT = DataType.FLOAT
numbers = st.sampled_from(sorted(DTYPES))
handles = st.builds(ResourceHandle, st.text(max_size=3), st.text(max_size=3), st.text(max_size=3), st.text(max_size=3))
texts = st.binary(max_size=5)


@st.composite
def dense_arrays(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> Array:
    """C-contiguous arrays with any bits, of any element type."""
    number = draw(numbers)
    if shape is None:
        shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    dtype, count = DTYPES[number], int(np.prod(shape))
    bits = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    bits = bytes(byte % 2 for byte in bits) if number == BOOL else bits
    return np.ndarray(shape, dtype, bits).copy()


@st.composite
def views(draw: st.DrawFn) -> Array:
    """Arrays that are slices, transpositions, reversals and repetitions of others, read-only or not."""
    array = draw(dense_arrays())
    steps = st.sampled_from([slice(None), slice(None, None, 2), slice(None, None, -1), slice(1, None), slice(0, 2)])
    array = array[tuple(draw(steps) for _ in range(array.ndim))] if array.ndim else array
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(0, 3)), *array.shape))
        array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = array.view()
        array.flags.writeable = False
    return array


scalars = dense_arrays(shape=()).map(lambda array: array[()])


def object_arrays(elements: Values) -> Values:
    """Arrays of objects of up to two axes."""

    def filled(shape: tuple[int, ...], items: list[Any]) -> Array:
        return np.fromiter(items, object, len(items)).reshape(shape)

    shapes = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    return shapes.flatmap(
        lambda shape: st.lists(elements, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))).map(
            lambda items: filled(shape, items)
        )
    )


def _carried(inner: Values) -> Values:
    types = st.sampled_from(DataType)
    shapes = st.none() | st.lists(st.none() | st.integers(0, 4), max_size=3).map(tuple)
    pairs = st.lists(st.tuples(types, inner), max_size=3)
    things = st.one_of(
        st.builds(
            lambda dtype, shape, items, limit: TensorList(dtype, shape, items, len(items), limit),
            types,
            shapes,
            st.lists(st.none() | inner, max_size=4),
            st.integers(-1, 9),
        ),
        st.just(Optional()),
        pairs.map(lambda some: Optional(tuple(value for _, value in some), tuple(dtype for dtype, _ in some))),
        st.builds(SerializedPart, inner, types),
        st.builds(lambda values: RaggedValue((np.array([0, 2, 3]),), values, FLOAT), dense_arrays(shape=(3,))),
        st.builds(_map_of, st.lists(st.tuples(dense_arrays() | object_arrays(texts), inner), max_size=3)),
        st.sampled_from([(2, 3), (1, 2, 3), (2, 2, 3)]).map(_matrix),
    )
    return things.map(carrying) | object_arrays(things)


def _map_of(entries: list[tuple[Array, Array]]) -> TensorMap:
    return TensorMap.of(MapEntry(key, FLOAT, value, DataType.VARIANT) for key, value in entries)


def _matrix(shape: tuple[int, ...]) -> CSRMatrix:
    rows = CsrRows(np.array([0, 2, 2], np.int32), np.array([0, 2], np.int32), np.array([0.5, -0.0], np.float32))
    return CSRMatrix(FLOAT, shape, (rows,) * (shape[0] if len(shape) == 3 else 1))


tensors: Values = views() | object_arrays(texts) | handles.map(handle_array) | object_arrays(handles)
carried_values: Values = st.recursive(tensors, _carried, max_leaves=6)
values: Values = scalars | st.none() | texts | handles | carried_values


def layout(array: Array) -> list[object]:
    """What of the order in memory decides how numpy computes: axes from the outermost, and where there are gaps."""
    axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1]
    axes.sort(key=lambda axis: -abs(array.strides[axis]))
    terms: list[object] = []
    dense = array.itemsize
    for axis in reversed(axes):
        stride = array.strides[axis]
        terms.append((axis, np.sign(stride), abs(stride) == dense))
        dense = abs(stride) * array.shape[axis] if stride else dense
    return terms


def assert_same(arrived: object, sent: object) -> None:
    """Asserts that two values are the same for every kernel: classes, types, shapes, bits, memory order, flags."""
    assert type(arrived) is type(sent)
    if isinstance(sent, np.ndarray) and isinstance(arrived, np.ndarray):
        assert (arrived.dtype, arrived.shape) == (sent.dtype, sent.shape)
        assert arrived.flags.writeable == sent.flags.writeable
        if sent.dtype == object:
            _assert_all_same(arrived.reshape(-1).tolist(), sent.reshape(-1).tolist())
            return
        assert arrived.flags.aligned
        assert arrived.tobytes() == sent.tobytes()
        assert not sent.size or layout(arrived) == layout(sent)
    elif isinstance(sent, np.generic) and isinstance(arrived, np.generic):
        assert (arrived.dtype, arrived.tobytes()) == (sent.dtype, sent.tobytes())
    elif isinstance(sent, TensorList) and isinstance(arrived, TensorList):
        assert (arrived.dtype, arrived.shape, arrived.limit) == (sent.dtype, sent.shape, sent.limit)
        _assert_all_same(arrived.items, sent.items)
    elif isinstance(sent, Optional) and isinstance(arrived, Optional):
        assert (arrived.dtypes, arrived.values is None) == (sent.dtypes, sent.values is None)
        _assert_all_same(list(arrived.values or ()), list(sent.values or ()))
    elif isinstance(sent, TensorMap) and isinstance(arrived, TensorMap):
        assert list(arrived.entries) == list(sent.entries)
        _assert_all_same([x for e in arrived.entries.values() for x in (e.key, e.value)], _tensors_of(sent))
    elif isinstance(sent, RaggedValue) and isinstance(arrived, RaggedValue):
        assert arrived.dtype == sent.dtype
        _assert_all_same([*arrived.splits, arrived.values], [*sent.splits, sent.values])
    elif isinstance(sent, CSRMatrix) and isinstance(arrived, CSRMatrix):
        assert (arrived.dtype, arrived.shape) == (sent.dtype, sent.shape)
        _assert_all_same(_parts_of(arrived), _parts_of(sent))
    elif isinstance(sent, SerializedPart) and isinstance(arrived, SerializedPart):
        assert arrived.dtype == sent.dtype
        assert_same(arrived.tensor, sent.tensor)
    else:
        assert arrived == sent


def _tensors_of(entries: TensorMap) -> list[Array]:
    return [tensor for entry in entries.entries.values() for tensor in (entry.key, entry.value)]


def _parts_of(matrix: CSRMatrix) -> list[Array]:
    return [each for part in matrix.parts for each in (part.row_ptrs, part.columns, part.values)]


def _assert_all_same(arrived: list[Any], sent: list[Any]) -> None:
    assert len(arrived) == len(sent)
    for one, other in zip(arrived, sent, strict=True):
        assert_same(one, other)
