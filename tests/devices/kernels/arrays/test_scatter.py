"""Kernels that put slices at given places: the slices are combined in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.random_arrays import arrays, filled, index_tuples, same

COMBINE: dict[str, Callable[[Any, Any], Any]] = {  # on elements of any type
    "TensorScatterAdd": lambda old, new: old + new,
    "TensorScatterSub": lambda old, new: old - new,
    "TensorScatterMax": max,
    "TensorScatterMin": min,
    "TensorScatterUpdate": lambda old, new: new,
}


@given(arrays(least=1, smallest=1, dtypes=(np.float32, np.int32, np.int64)), st.data())
def test_scattering_combines_in_order(x: Array, data: st.DataObject) -> None:
    indices = data.draw(index_tuples(x))
    depth = indices.shape[-1]
    updates = filled((*indices.shape[:-1], *x.shape[depth:]), x.dtype, 5)
    for op, combine in COMBINE.items():
        expected = x.copy()
        for place in np.ndindex(*indices.shape[:-1]):
            for inner in np.ndindex(*x.shape[depth:]):
                target = (*indices[place], *inner)
                expected[target] = combine(expected[target], updates[(*place, *inner)])
        assert same(check_shapes(op, x, indices, updates), expected), op
    added = run("TensorScatterAdd", x, indices, updates)
    assert same(check_shapes("ScatterNdNonAliasingAdd", x, indices, updates), added)
    spread = check_shapes("ScatterNd", indices, updates, np.array(x.shape, indices.dtype))
    assert same(spread + x, added)


def test_a_transposed_tensor_is_scattered_into() -> None:
    """A view that is not contiguous takes the updates like any other tensor, and its base stays as it was."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    indices, updates = np.array([[0, 1], [3, 2]]), np.array([100, 200], np.float32)
    for op in COMBINE:
        expected = run(op, np.ascontiguousarray(x.T), indices, updates)
        assert same(run(op, x.T, indices, updates), expected), op
    assert run("ScatterNdNonAliasingAdd", x.T, indices, updates)[3, 2] == 211
    assert same(x, np.arange(12, dtype=np.float32).reshape(3, 4))
