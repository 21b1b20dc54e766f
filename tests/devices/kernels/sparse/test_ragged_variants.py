"""Ragged tensors survive the way through variants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.kernels.carried import sum_of, zeros_like
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

FLOAT, INT64 = DataType.FLOAT, DataType.INT64
LENGTHS = st.lists(st.integers(0, 3), min_size=1, max_size=4)


def encode(splits: list[Array], values: Array, batched: bool) -> Array:
    """Variants."""
    encoded: Array = check_shapes("RaggedTensorToVariant", splits, values, batched_input=batched, Tsplits=INT64)
    return encoded


def decode(encoded: Array, inner: int, rank: int, dtype: DataType = FLOAT, splits: DataType = INT64) -> list[Any]:
    """Splits and values, as lists."""
    attrs = {"input_ragged_rank": inner, "output_ragged_rank": rank, "Tvalues": dtype, "Tsplits": splits}
    found = run("RaggedTensorFromVariant", encoded, **attrs)  # type: ignore[arg-type]  # attrs of several types
    return [part.tolist() for part in (found if isinstance(found, tuple) else (found,))]


@given(LENGTHS, st.booleans())
def test_ragged_vectors_survive(lengths: list[int], batched: bool) -> None:
    """As one variant, or one for each row."""
    splits = np.cumsum([0, *lengths])
    values = np.arange(splits[-1], dtype=np.float32)
    encoded = encode([splits], values, batched)
    assert encoded.shape == ((len(lengths),) if batched else ())
    for inner in (-1, 0 if batched else 1):
        assert decode(encoded, inner, 1) == [splits.tolist(), values.tolist()]


def test_inner_splits_begin_at_zero_in_each_variant() -> None:
    """And are put together again; a matrix of variants adds two axes. TensorFlow 2.21 gives these."""
    splits, values = [np.array([0, 2, 2, 3]), np.array([0, 1, 3, 3])], np.array([1, 2, 3], np.float32)
    rows = encode(splits, values, True)
    assert decode(rows, 1, 2) == [[0, 2, 2, 3], [0, 1, 3, 3], [1, 2, 3]]
    assert decode(rows[0:1].reshape(()), 1, 1) == [[0, 1, 3], [1, 2, 3]]
    one = encode(splits[:1], values, False)
    assert decode(np.stack([np.stack([one, one])]), -1, 3)[:2] == [[0, 2], [0, 3, 6]]


def test_rows_of_one_shape_may_be_stacked() -> None:
    """Without splits."""
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert decode(encode([], values, True), 0, 0) == [values.tolist()]
    assert decode(encode([], values, False), 0, 0) == [values.tolist()]
    assert decode(np.empty(0, object), 0, 1) == [[0], []]


def test_gradients_go_back_through_variants() -> None:
    """Values of all rows, one after the other; variants can be added and have zeros."""
    rows = encode([np.array([0, 2, 2, 3])], np.array([1, 2, 3], np.float32), True)
    doubled = sum_of(rows, rows, DataType.VARIANT)
    shape = np.array([3], np.int32)
    back = check_shapes("RaggedTensorToVariantGradient", doubled, np.array([0, 2, 2, 3]), shape, Tvalues=FLOAT)
    assert back.tolist() == [2, 4, 6]
    assert decode(zeros_like(rows, DataType.VARIANT), 0, 1) == [[0, 2, 2, 3], [0, 0, 0]]


@pytest.mark.parametrize(
    ("ranks", "types", "message"),
    [
        ((1, 2), (FLOAT, INT64), "Encoded input RaggedTensorVariant has ragged_rank=0.  Expected ragged_rank=1."),
        ((0, 2), (FLOAT, INT64), "output_ragged_rank must be equal to input_ragged_rank . encoded_ragged.dims"),
        ((0, 0), (FLOAT, INT64), r"Shape at index 0: \[2\].  Shape at index 1: \[0\]"),
        ((0, 1), (DataType.INT32, INT64), "Expected values Tensor dtype: int32, found: float"),
    ],
)
def test_wrong_variants_are_refused(ranks: tuple[int, int], types: tuple[DataType, DataType], message: str) -> None:
    """In TensorFlow's words."""
    rows = encode([np.array([0, 2, 2, 3])], np.array([1, 2, 3], np.float32), True)
    with pytest.raises(InvalidArgumentError, match=message):
        decode(rows, *ranks, *types)
    with pytest.raises(InvalidArgumentError, match="last element of ragged splits must be the number of ragged values"):
        encode([np.array([0, 2])], np.zeros(3, np.float32), True)
