"""Rows of variables are read and updated in order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState, Variable
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import run
from tests.devices.kernels.variables.variable_tensors import handle, reference

COMBINE: dict[str, Callable[[float, float], float]] = {
    "Update": lambda old, new: new,
    "Add": lambda old, new: old + new,
    "Sub": lambda old, new: old - new,
    "Mul": lambda old, new: old * new,
    "Min": min,
    "Max": max,
}


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=8)


@pytest.mark.parametrize("name", COMBINE)
@given(ROWS)
def test_scatter_combines_in_order(name: str, rows: list[tuple[int, int]]) -> None:
    """An index that occurs twice is combined twice, and both kinds of variables agree."""
    start = [1.0, -2.0, 3.0, 0.0]
    expected = list(start)
    for index, update in rows:
        expected[index] = COMBINE[name](expected[index], update)
    indices, updates = np.array([i for i, _ in rows], np.int32), np.array([u for _, u in rows], np.float32)
    variable, state = reference(np.array(start, np.float32)), DeviceState()
    run(f"Scatter{name}", variable, indices, updates)
    np.testing.assert_array_equal(variable.read(), np.array(expected, np.float32))
    resource = handle(state, np.array(start, np.float32))
    run(f"ResourceScatter{name}", resource, indices, updates, state=state)
    read = run("ReadVariableOp", resource, state=state, dtype=DataType.FLOAT)
    np.testing.assert_array_equal(read, variable.read())
    if name != "Mul":
        run(f"ScatterNd{name}", reference(np.array(start, np.float32)), indices[:, None], updates)


def test_integer_division_rounds_to_zero() -> None:
    """numpy's division would round down."""
    variable = Variable("v", DataType.INT32, np.array([-7, 7], np.int32))
    run("ScatterDiv", variable, np.array([0, 1], np.int32), np.array([2, -2], np.int32))
    np.testing.assert_array_equal(variable.read(), [-3, -3])


def test_indices_outside_change_nothing() -> None:
    """All indices are checked before the first update."""
    variable = reference(np.ones(3, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"):
        run("ScatterAdd", variable, np.array([0, 3], np.int32), np.ones(2, np.float32))
    with pytest.raises(InvalidArgumentError, match=r"indices\[0\] = \[3\] does not index into shape \[3\]"):
        run("ScatterNdAdd", variable, np.array([[3]], np.int32), np.ones(1, np.float32))
    np.testing.assert_array_equal(variable.read(), np.ones(3))


@given(st.integers(0, 1), st.integers(0, 99))
def test_gather_reads_rows(batch_dims: int, seed: int) -> None:
    """ResourceGather is numpy's take along the axis after the batch axes."""
    rng = np.random.default_rng(seed)
    values, state = rng.random((2, 3, 2)).astype(np.float32), DeviceState()
    variable = handle(state, values)
    indices = rng.integers(0, values.shape[batch_dims], (2, 4)).astype(np.int32)
    actual = run("ResourceGather", variable, indices, state=state, dtype=DataType.FLOAT, batch_dims=batch_dims)
    expected = np.stack([v[i] for v, i in zip(values, indices, strict=True)]) if batch_dims else values[indices]
    np.testing.assert_array_equal(actual, expected)
