"""Maps from tensors to tensors are Python's dictionaries that never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

INT = DataType.INT32


def insert(handle: Array, key: Any, value: Any) -> Array:
    """The map with one more value."""
    result: Array = check_shapes("TensorMapInsert", handle, key, value)
    return result


def lookup(handle: Array, key: Any, dtype: DataType = INT) -> Any:
    return np.asarray(check_shapes("TensorMapLookup", handle, key, value_dtype=dtype)).tolist()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 99)), max_size=8), st.integers(0, 4))
def test_maps_are_dictionaries(pairs: list[tuple[int, int]], erased: int) -> None:
    """Every map on the way stays as it was."""
    handle = check_shapes("EmptyTensorMap")
    expected: dict[int, int] = {}
    for key, value in pairs:
        before = dict(expected)
        changed = insert(handle, np.int32(key), np.int32(value))
        assert {key: lookup(handle, np.int32(key)) for key in before} == before
        handle, expected[key] = changed, value
    assert check_shapes("TensorMapSize", handle) == len(expected)
    assert bool(check_shapes("TensorMapHasKey", handle, np.int32(erased))) == (erased in expected)
    if expected:
        assert check_shapes("TensorMapStackKeys", handle, key_dtype=INT).tolist() == list(expected)
    if erased in expected:
        smaller = check_shapes("TensorMapErase", handle, np.int32(erased), value_dtype=INT)
        assert run("TensorMapSize", smaller) == len(expected) - 1
        assert not run("TensorMapHasKey", smaller, np.int32(erased))


def test_keys_of_another_type_or_shape_are_others() -> None:
    """Values may have any types and shapes, too."""
    handle = run("EmptyTensorMap")
    keys = [np.int32(3), np.int64(3), np.array([3], np.int32), np.array(b"3", object)]
    for number, key in enumerate(keys):
        handle = insert(handle, key, np.full(number, number, np.float32))
    for number, key in enumerate(keys):
        assert lookup(handle, key, DataType.FLOAT) == [number] * number


def test_sums_and_zeros() -> None:
    """Values with equal keys are added, the others are kept: gradients of maps are sums of maps."""
    one = insert(run("EmptyTensorMap"), np.int32(1), np.array([1, 2], np.int32))
    both = insert(one, np.int32(5), np.int32(7))
    total = run("AddN", [one, both], T=DataType.VARIANT)
    assert [lookup(total, np.int32(key)) for key in (1, 5)] == [[2, 4], 7]
    assert lookup(run("ZerosLike", both, T=DataType.VARIANT), np.int32(1)) == [0, 0]


def test_what_is_refused() -> None:
    """In TensorFlow's words."""
    empty = run("EmptyTensorMap")
    handle = insert(empty, np.int32(1), np.int32(2))
    with pytest.raises(InvalidArgumentError, match=r'Trying to lookup non-existent key\. Could not find key "5"\.'):
        lookup(handle, np.int32(5))
    with pytest.raises(InvalidArgumentError, match=r'Trying to erase non-existent item\. Could not find key "5"\.'):
        run("TensorMapErase", handle, np.int32(5), value_dtype=INT)
    with pytest.raises(InvalidArgumentError, match=r"Type mismatch: actual int32 vs\. expect float"):
        lookup(handle, np.int32(1), DataType.FLOAT)
    with pytest.raises(InvalidArgumentError, match=r"TensorMapStackKeys cannot be called on empty map\."):
        run("TensorMapStackKeys", empty, key_dtype=INT)
    with pytest.raises(InvalidArgumentError, match=r"Key does not match requested dtype\."):
        run("TensorMapStackKeys", handle, key_dtype=DataType.INT64)
    with pytest.raises(InvalidArgumentError, match=r"Input handle is not a map\. Saw: 'TensorList'"):
        run("TensorMapSize", run("EmptyTensorList", np.int32(-1), np.int32(4), element_dtype=INT))
