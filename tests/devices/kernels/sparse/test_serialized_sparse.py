"""Sparse tensors survive serialisation, and many of them become one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.strings.each_string import strings
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.sparse.sparse_tensors import INDICES, SHAPE, VALUES, dense_of, matrices, parts_of

FLOAT, DOUBLE, STRING = DataType.FLOAT, DataType.DOUBLE, DataType.STRING


@given(matrices(), st.booleans())
def test_sparse_tensors_survive(dense: Array, as_variants: bool) -> None:
    """As strings and as variants; row by row too."""
    out = DataType.VARIANT if as_variants else STRING
    one = check_shapes("SerializeSparse", *parts_of(dense), out_type=out)
    back = run("DeserializeSparse", one, dtype=DOUBLE, Tserialized=out)
    np.testing.assert_array_equal(dense_of(back), dense)
    many = check_shapes("SerializeManySparse", *parts_of(dense), out_type=out)
    assert many.shape == (len(dense), 3)
    back = run("DeserializeSparse", many, dtype=DOUBLE, Tserialized=out)
    np.testing.assert_array_equal(dense_of(back), dense)
    stacked = run("DeserializeSparse", np.stack([one, one]), dtype=DOUBLE, Tserialized=out)
    np.testing.assert_array_equal(dense_of(stacked), np.stack([dense, dense]))


def test_bytes_of_tensorflow() -> None:
    """Strings are lengths and then all bytes. TensorFlow 2.21 gives these."""
    texts = strings([b"a", b"bb", b""], (3,))
    indices, values, shape = check_shapes("SerializeSparse", INDICES, texts, SHAPE).tolist()
    assert values == b'\x08\x07\x12\x04\x12\x02\x08\x03"\x06\x01\x02\x00abb'
    assert shape == b'\x08\t\x12\x04\x12\x02\x08\x02"\x10' + np.array([2, 3]).tobytes()
    assert indices.startswith(b'\x08\t\x12\x08\x12\x02\x08\x03\x12\x02\x08\x02"0')
    row = strings([indices, values, shape], (1, 3))
    assert check_shapes("DeserializeManySparse", row, dtype=STRING)[1].tolist() == texts.tolist()


def test_the_greatest_sizes_are_taken() -> None:
    """Of tensors of one rank."""
    wide = run("SerializeSparse", np.array([[0, 4]]), np.ones(1, np.float32), np.array([1, 5]))
    both = np.stack([run("SerializeSparse", INDICES, VALUES, SHAPE), wide])
    indices, _, shape = run("DeserializeSparse", both, dtype=FLOAT)
    assert (indices[-1].tolist(), shape.tolist()) == ([1, 0, 4], [2, 2, 5])


ONE = run("SerializeSparse", INDICES, VALUES, SHAPE)
FLAT = run("SerializeSparse", np.array([[0]]), np.ones(1, np.float32), np.array([2]))


@pytest.mark.parametrize(
    ("serialized", "dtype", "message"),
    [
        (ONE[:2], FLOAT, r"Serialized sparse should have 3 as the last dimension \[2\]"),
        (np.zeros((0, 3), object), FLOAT, r"at least 1 serialized tensor, but has a zero dimension \[0,3\]"),
        (strings([b"a", b"b", b"c"], (3,)), FLOAT, "Could not parse serialized proto"),
        (ONE, DataType.INT32, r"type int32 but SparseTensor\[0\].values.dtype\(\) == float"),
        (np.stack([ONE, FLAT]), FLOAT, r"prior to SparseTensor\[1\] was: 2 but rank of SparseTensor\[1\] is: 1"),
    ],
)
def test_other_strings_are_refused(serialized: Array, dtype: DataType, message: str) -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("DeserializeSparse", serialized, dtype=dtype, Tserialized=STRING)


def test_wrong_parts_are_refused() -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=r"Input indices should be a matrix but received shape \[3\]"):
        run("SerializeSparse", INDICES[:, 0], VALUES, SHAPE)
    with pytest.raises(InvalidArgumentError, match="Rank of input SparseTensor should be > 1, but saw rank: 1"):
        run("SerializeManySparse", INDICES[:, :1], VALUES, SHAPE[:1])
    with pytest.raises(InvalidArgumentError, match=r"must match. \(indices = 3, values = 2\)"):
        run("SerializeManySparse", INDICES, VALUES[:2], SHAPE)
    with pytest.raises(InvalidArgumentError, match="is out of order"):
        run("SerializeManySparse", INDICES[::-1], VALUES, SHAPE)
