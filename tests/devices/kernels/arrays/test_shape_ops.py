"""Reading and changing shapes, permuting axes, making tensors from sizes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import NUMBERS, arrays, ints, same, shapes_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@given(arrays(), st.sampled_from([DataType.INT32, DataType.INT64]))
def test_shape_size_and_rank_describe_the_array(x: Array, out: DataType) -> None:
    assert check_shapes("Shape", x, out_type=out).tolist() == list(x.shape)
    assert check_shapes("Size", x, out_type=out) == x.size
    assert check_shapes("Rank", x) == x.ndim
    both = check_shapes("ShapeN", [x, x[None]], out_type=out)
    assert [s.tolist() for s in both] == [list(x.shape), [1, *x.shape]]


@given(arrays(), st.randoms())
def test_reshape_keeps_the_elements_in_order(x: Array, random: Any) -> None:
    sizes = list(x.shape)
    random.shuffle(sizes)
    actual = check_shapes("Reshape", x, ints(*sizes, 1))
    assert same(actual.reshape(-1), x.reshape(-1))
    if x.size:
        assert same(check_shapes("Reshape", x, np.array([-1], np.int64)), x.reshape(-1))
    assert same(run("Reshape", actual, ints(*x.shape)), x)


@pytest.mark.parametrize(
    ("shape", "sizes", "result"),
    [
        ((0, 3), (0, -1), (0, 3)),
        ((0, 3), (2, -1), (2, 0)),
        ((0, 3), (-1, 0), (3, 0)),
        ((0, 6, 2), (0, 4, -1), (0, 4, 3)),
        ((2, 0, 4), (0, 16, -1), (0, 16, 0)),
        ((), (), ()),
        ((), (1, -1), (1, 1)),
    ],
)
def test_reshape_infers_a_size_of_an_empty_tensor_from_the_others(shape: Any, sizes: Any, result: Any) -> None:
    assert check_shapes("Reshape", np.zeros(shape, np.float32), ints(*sizes)).shape == result


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (ints(7), "Input to reshape is a tensor with 6 values, but the requested shape has 7"),
        (ints(-1, 4), "Input to reshape is a tensor with 6 values, but the requested shape requires a multiple of 4"),
        (ints(0, -1), "Input to reshape is a tensor with 6 values, but the requested shape has 0"),
        (ints(-1, -1), "Only one input size may be -1, not both 0 and 1"),
        (ints(-2, 3), "Size 0 must be non-negative, not -2"),
        (np.array([[6]], np.int32), "sizes input must be 1-D, not [1,1]"),
    ],
)
def test_reshape_refuses_in_these_words(sizes: Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("Reshape", X, sizes)
    assert caught.value.message == message


@given(arrays(most=3), st.integers(-4, 3))
def test_expand_dims_and_squeeze_undo_each_other(x: Array, axis: int) -> None:
    if not -x.ndim - 1 <= axis <= x.ndim:
        with pytest.raises(InvalidArgumentError, match="Tried to expand dim index"):
            run("ExpandDims", x, np.int32(axis))
        return
    wider = check_shapes("ExpandDims", x, np.int32(axis))
    assert wider.shape == np.expand_dims(x, axis).shape
    assert same(check_shapes("Squeeze", wider, squeeze_dims=(axis,)), x)


@given(arrays())
def test_squeeze_without_axes_drops_every_one(x: Array) -> None:
    assert same(check_shapes("Squeeze", x, squeeze_dims=()), x.squeeze())


def test_squeeze_refuses_other_sizes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Can not squeeze dim\[0\], expected a dimension of 1, got 2"):
        run("Squeeze", X, squeeze_dims=(-2,))
    with pytest.raises(InvalidArgumentError, match="Tried to squeeze dim index 5 for tensor with 2 dimensions"):
        run("Squeeze", X, squeeze_dims=(5,))
    assert shapes("Squeeze", (1, None), squeeze_dims=()) == [None]


@given(arrays(), st.data())
def test_transposing_back_gives_the_input(x: Array, data: st.DataObject) -> None:
    perm = data.draw(st.permutations(range(x.ndim)))
    there = check_shapes("Transpose", x, ints(*perm))
    assert same(there, x.transpose(perm))
    inverse = check_shapes("InvertPermutation", ints(*perm))
    assert same(run("Transpose", there, inverse), x)
    if x.dtype != object:
        assert same(check_shapes("ConjugateTranspose", x, ints(*perm)), np.conj(x.transpose(perm)).astype(x.dtype))


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        (ints(0), "transpose expects a vector of size 2. But input(1) is a vector of size 1"),
        (ints(), "transpose expects a vector of size 2. But input(1) is a vector of size 0"),
        (ints(1, 1), "0 is missing from {1,1}."),
        (ints(0, 2), "2 is out of range [0 .. 2)"),
        (np.int32(0), "perm must be rank 1, got shape []"),
    ],
)
def test_transpose_refuses_what_is_no_permutation(perm: Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("Transpose", X, perm)
    assert caught.value.message == message


@given(arrays(), st.data())
def test_tile_agrees_with_numpy(x: Array, data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 3), min_size=x.ndim, max_size=x.ndim))
    expected = np.tile(x, times) if x.ndim else x
    assert same(check_shapes("Tile", x, ints(*times)), expected)


@given(shapes_of(most=3), st.data())
def test_the_gradient_of_tile_adds_up_what_was_repeated(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Of repeated ones it is the number of repetitions."""
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(shape), max_size=len(shape)))
    tiled = run("Tile", np.ones(shape, np.float32), ints(*times))
    assert same(check_shapes("TileGrad", tiled, ints(*times)), np.full(shape, np.prod(times), np.float32))


def test_what_tile_cannot_have_made_has_no_gradient() -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[3, 1\] repetitions do not make shape \[2,3\]"):
        run("TileGrad", X, ints(3, 1))


@given(shapes_of(most=3), arrays(least=0, most=0))
def test_fill_is_broadcasting_a_scalar(shape: tuple[int, ...], value: Array) -> None:
    actual = check_shapes("Fill", ints(*shape), value)
    assert same(actual, check_shapes("BroadcastTo", value, ints(*shape)))
    assert actual.shape == shape


@given(shapes_of(most=3), shapes_of(most=3))
def test_broadcast_args_is_what_numpy_says(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
            run("BroadcastArgs", ints(*a), ints(*b))
        return
    assert check_shapes("BroadcastArgs", ints(*a), ints(*b)).tolist() == list(expected)
    assert run("BroadcastTo", np.zeros(a, np.float32), ints(*expected)).shape == expected


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5), st.sampled_from([np.int32, np.int64]))
def test_a_range_of_integers_is_pythons(start: int, limit: int, delta: int, dtype: Any) -> None:
    args = (dtype(start), dtype(limit), dtype(delta))
    if delta == 0 or (limit - start) * delta < 0:
        with pytest.raises(InvalidArgumentError, match="Requires"):
            run("Range", *args)
        return
    assert check_shapes("Range", *args).tolist() == list(range(start, limit, delta))


def test_a_range_of_floats_counts_in_its_own_type() -> None:
    actual = check_shapes("Range", np.float64(0.1), np.float64(100), np.float64(0.1))
    assert actual.size == 999
    assert same(actual, 0.1 + np.arange(999) * 0.1)
    assert run("Range", np.int64(2**62), np.int64(-(2**62)), np.int64(-(2**61))).size == 4
    assert check_shapes("Range", *np.array([0, 3, 1], ml_dtypes.bfloat16)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linspace_hits_both_ends(dtype: Any) -> None:
    actual = check_shapes("LinSpace", dtype(0.1), dtype(7.3), np.int32(101))
    assert actual[0] == dtype(0.1)
    assert actual[-1] == dtype(7.3)
    assert check_shapes("LinSpace", dtype(0.1), dtype(7.3), np.int32(1)).tolist() == [dtype(0.1)]
    with pytest.raises(InvalidArgumentError, match="Requires num > 0: 0"):
        run("LinSpace", dtype(0), dtype(1), np.int32(0))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.sampled_from(NUMBERS))
def test_concat_offset_says_where_pieces_start(sizes: list[int], dtype: Any) -> None:
    pieces = [np.full((2, size), i).astype(dtype) for i, size in enumerate(sizes)]
    vectors = [ints(*piece.shape) for piece in pieces]
    if len(pieces) < 2:
        return
    whole = run("ConcatV2", pieces, np.int32(1))
    for piece, start in zip(pieces, check_shapes("ConcatOffset", np.int32(-1), vectors), strict=True):
        assert same(run("Slice", whole, start, ints(*piece.shape)), piece)


def test_shape_values_that_are_not_known_cost_only_what_depends_on_them() -> None:
    assert shapes("Reshape", (2, 3), (2,)) == [(None, None)]
    assert shapes("Reshape", (2, None), ints(3, -1)) == [(3, None)]
    assert shapes("Reshape", (2, None), (None,)) == [None]
    assert shapes("Fill", (3,), ()) == [(None, None, None)]
    assert shapes("Range", (), (), ()) == [(None,)]
    assert shapes("Transpose", (2, 3), (2,)) == [(None, None)]
    assert shapes("Transpose", (2,), (1,)) == [(2,)]
    assert shapes("Tile", None, (2,)) == [(None, None)]
    assert shapes("Shape", None) == [(None,)]
