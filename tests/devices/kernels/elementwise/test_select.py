"""Selection picks, and checks let good values pass."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.draws import FLOAT_TYPES, INTEGER_TYPES, NUMBERS, SHAPES, filled, pairs
from tests.devices.kernels.harness import check_shapes, run, shapes

BOOL = np.dtype(np.bool_)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3), st.sampled_from([*NUMBERS, BOOL]))
def test_select_broadcasts_all_three(drawn: hnp.BroadcastableShapes, dtype: np.dtype[Any]) -> None:
    """Each element comes from `then` or from `else`."""
    c, t, e = drawn.input_shapes
    condition, then, otherwise = filled(BOOL, c, 0, 0, 1), filled(dtype, t, 1), filled(dtype, e, 2)
    actual = check_shapes("SelectV2", condition, then, otherwise)
    np.testing.assert_array_equal(actual, np.where(condition, then, otherwise))


def test_select_picks_rows() -> None:
    """By a vector; whole tensors by a scalar; elements by a condition of the full shape; text as well."""
    then, otherwise = np.zeros((2, 3)), np.ones((2, 3))
    assert check_shapes("Select", np.array([True, False]), then, otherwise).tolist() == [[0] * 3, [1] * 3]
    assert check_shapes("Select", np.bool_(False), then, otherwise).all()
    assert check_shapes("Select", np.ones((2, 3), np.bool_), then, otherwise).sum() == 0
    words = np.array([b"a", b"b"], object)
    assert run("Select", np.array([True, False]), words, words[::-1]).tolist() == [b"a", b"a"]
    assert run("SelectV2", np.bool_(True), words[0:1], words[1:2]).tolist() == [b"a"]


@pytest.mark.parametrize(
    ("op", "condition", "then", "otherwise", "message"),
    [
        ("Select", (2,), (3, 3), (3, 3), "Number of batches of 'then' must match size of 'cond', but saw: 3 vs. 2"),
        ("Select", (), (2, 3), (3,), r"'then' and 'else' must have the same size.*\[2,3\] vs. \[3\]"),
        ("Select", (1, 2), (2, 3), (2, 3), "must have the same size and shape"),
        ("SelectV2", (), (3,), (2,), r"condition \[\], then \[3\], and else \[2\] must be broadcastable"),
    ],
)
def test_choices_that_do_not_fit(
    op: str, condition: tuple[int, ...], then: tuple[int, ...], otherwise: tuple[int, ...], message: str
) -> None:
    """Each with its own message."""
    with pytest.raises(InvalidArgumentError, match=message):
        run(op, np.ones(condition, np.bool_), np.ones(then), np.ones(otherwise))


def test_select_merges_what_is_known() -> None:
    """The choices have one shape, whose first size is also the condition's."""
    assert shapes("Select", (2,), (None, 3), (None, None)) == [(2, 3)]
    assert shapes("Select", None, (None, 3), None) == [(None, 3)]
    assert shapes("SelectV2", (None, 1), (3,), ()) == [(None, 3)]


@given(st.sampled_from([*NUMBERS]), st.sampled_from([*NUMBERS]), SHAPES)
def test_bitcast_there_and_back(source: np.dtype[Any], target: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Restores the tensor; the last axis takes up the difference of sizes."""
    ratio = target.itemsize // source.itemsize
    x = filled(source, (*shape, ratio) if ratio > 1 else shape, 0)
    there = check_shapes("Bitcast", x, type=from_numpy(target))
    assert there.nbytes == x.nbytes
    back = check_shapes("Bitcast", there, type=from_numpy(source))
    np.testing.assert_array_equal(back, x)


def test_bitcast_to_a_larger_type_needs_whole_elements() -> None:
    """On the last axis."""
    for x in (np.zeros((1, 3), np.uint8), np.uint8(1)):
        with pytest.raises(InvalidArgumentError, match="Cannot bitcast"):
            run("Bitcast", x, type=DataType.INT32)
    with pytest.raises(InvalidArgumentError, match="does not match 4"):
        shapes("Bitcast", np.zeros((1, 3), np.uint8), type=DataType.INT32)
    assert shapes("Bitcast", (2, None), T=DataType.UINT8, type=DataType.INT32) == [(2,)]


@given(pairs([*FLOAT_TYPES, *INTEGER_TYPES]))
def test_clipped_values_lie_between(operands: tuple[Array, Array]) -> None:
    """The bounds, which are scalars."""
    x, bounds = operands[0], operands[1].reshape(-1)
    if bounds.size < 2:
        return
    low, high = sorted(bounds[:2])
    clipped = check_shapes("ClipByValue", x, low, high)
    np.testing.assert_array_equal(clipped, np.minimum(np.maximum(x, low), high))


def test_clipping_at_its_edges() -> None:
    """The lower bound wins over the upper; NaN stays; complex parts are clipped one by one; bounds do not broadcast."""
    x = np.array([1, 9, np.nan], np.float32)
    np.testing.assert_array_equal(run("ClipByValue", x, np.float32(7), np.float32(6)), [7, 7, np.nan])
    z = run("ClipByValue", np.array([1 + 9j]), np.complex128(2 + 0j), np.complex128(6 + 3j))
    assert z.tolist() == [2 + 3j]
    with pytest.raises(InvalidArgumentError, match="either of the same shape as input, or a scalar"):
        run("ClipByValue", x, np.zeros(1, np.float32), np.float32(6))


@pytest.mark.parametrize(
    ("values", "found", "signed"),
    [
        ([1, np.nan], "NaN", "NaN"),
        ([-np.inf], "Inf", "-Inf"),
        ([np.nan, -np.inf], "Inf and NaN", "-Inf and NaN"),
        ([np.nan, -np.inf, np.inf], "Inf and NaN", "-Inf, +Inf, and NaN"),
    ],
)
def test_bad_numbers_are_named(values: list[float], found: str, signed: str) -> None:
    """Version 2 tells the signs of infinities."""
    x = np.array(values, np.float32)
    with pytest.raises(InvalidArgumentError) as error:
        run("CheckNumerics", x, message="hey")
    assert error.value.message == f"hey : Tensor had {found} values"
    with pytest.raises(InvalidArgumentError) as error:
        run("CheckNumericsV2", x, message="hey")
    assert error.value.message == f"hey : Tensor had {signed} values"


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_good_numbers_pass(dtype: np.dtype[Any]) -> None:
    """Unchanged."""
    x = filled(dtype, (2, 3), 0)
    np.testing.assert_array_equal(check_shapes("CheckNumerics", x, message=""), x)


@given(st.lists(st.floats(-10, 10, width=32), max_size=6), st.lists(st.floats(-10, 10, width=32), max_size=4))
def test_buckets_count_the_boundaries_not_above(values: list[float], boundaries: list[float]) -> None:
    """A value on a boundary belongs to the upper bucket."""
    edges = sorted(boundaries)
    actual = check_shapes("Bucketize", np.array(values, np.float32), boundaries=edges)
    assert actual.tolist() == [sum(edge <= value for edge in edges) for value in values]


def test_boundaries_are_sorted() -> None:
    """Or refused."""
    with pytest.raises(InvalidArgumentError, match="Expected sorted boundaries"):
        run("Bucketize", np.ones(1), boundaries=[1.0, 0.0])
