"""Ops from sparse tensors to sparse tensors do what is done to the dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes
from tests.devices.kernels.random_arrays import same
from tests.devices.kernels.sparse.sparse_tensors import dense_of, matrices, parts_of


@given(matrices(3), st.randoms())
def test_reordering_and_reshaping_keep_the_dense_tensor(dense: Array, random: Any) -> None:
    indices, values, shape = parts_of(dense)
    order = list(range(values.size))
    random.shuffle(order)
    again = check_shapes("SparseReorder", indices[order], values[order], shape)
    assert same(again[0], indices)
    assert same(again[1], values)
    moved, new_shape = check_shapes("SparseReshape", indices, shape, np.array([dense.shape[0], -1]))
    assert np.array_equal(dense_of((moved, values, new_shape)), dense.reshape(dense.shape[0], -1))


@given(matrices(), st.data())
def test_slices_and_concatenations_are_those_of_dense_tensors(dense: Array, data: st.DataObject) -> None:
    start = np.array([data.draw(st.integers(0, n)) for n in dense.shape])
    size = np.array([data.draw(st.integers(0, 5)) for _ in dense.shape])
    box = tuple(slice(a, a + n) for a, n in zip(start.tolist(), size.tolist(), strict=True))
    parts = parts_of(dense)
    assert np.array_equal(dense_of(check_shapes("SparseSlice", *parts, start, size)), dense[box])
    axis = data.draw(st.integers(-2, 1))
    joined = check_shapes("SparseConcat", *([part, part] for part in parts), concat_dim=axis)
    assert np.array_equal(dense_of(joined), np.concatenate([dense, dense], axis))
    assert same(joined[0], parts_of(dense_of(joined))[0])


@given(matrices())
def test_every_row_has_an_element_after_filling_and_old_ones_are_found_again(dense: Array) -> None:
    indices, values, shape = parts_of(dense)
    merged, new_values, empty, places = check_shapes("SparseFillEmptyRows", indices, values, shape, np.float64(9))
    assert set(merged[:, 0].tolist()) == set(range(dense.shape[0]))
    assert empty.tolist() == [not row.any() for row in dense]
    assert same(merged[places], indices)
    assert same(new_values[places], values)
    old, default = check_shapes("SparseFillEmptyRowsGrad", places, new_values)
    assert same(old, values)
    assert default == 9 * int(empty.sum())


@given(matrices(), st.integers(1, 4))
def test_splitting_cuts_the_dense_tensor(dense: Array, count: int) -> None:
    if count > dense.shape[1]:
        return
    pieces = check_shapes("SparseSplit", np.int64(1), *parts_of(dense), num_split=count)
    parts = [dense_of((pieces[i], pieces[count + i], pieces[2 * count + i])) for i in range(count)]
    assert np.array_equal(np.concatenate(parts, 1), dense)
