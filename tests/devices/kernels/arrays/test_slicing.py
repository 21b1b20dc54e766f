"""Cutting arrays up and putting them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import DTYPES, arrays, filled, ints, same, texts

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@st.composite
def strided_slices(draw: st.DrawFn) -> tuple[Array, list[Any], dict[str, Any], tuple[Any, ...]]:
    """An array, the lists and masks of a slice of it, and the same slice as a numpy index."""
    x = draw(arrays(least=0, most=3))
    entries = draw(st.lists(st.sampled_from(["range", "new", "drop"]), max_size=4))
    while sum(e != "new" for e in entries) > x.ndim:
        entries.remove(next(e for e in entries if e != "new"))
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), "ellipsis")
    index: list[Any] = []
    axis = 0
    used = sum(e in ("range", "drop") for e in entries)
    rows: list[tuple[int, int, int]] = []
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, entry in enumerate(entries):
        begin, end = draw(st.integers(-5, 5)), draw(st.integers(-5, 5))
        stride = draw(st.sampled_from([1, 1, 2, -1, -2]))
        if entry == "ellipsis":
            masks["ellipsis_mask"] |= 1 << i
            index.append(Ellipsis)
            axis += x.ndim - used
        elif entry == "new":
            masks["new_axis_mask"] |= 1 << i
            index.append(None)
        elif entry == "drop" and x.shape[axis]:
            masks["shrink_axis_mask"] |= 1 << i
            begin, stride = draw(st.integers(-x.shape[axis], x.shape[axis] - 1)), 1
            index.append(begin)
            axis += 1
        else:
            open_begin, open_end = draw(st.booleans()), draw(st.booleans())
            masks["begin_mask"] |= open_begin << i
            masks["end_mask"] |= open_end << i
            index.append(slice(None if open_begin else begin, None if open_end else end, stride))
            axis += 1
        rows.append((begin, end, stride))
    lists = [ints(*(row[k] for row in rows)) for k in range(3)]
    return x, lists, masks, tuple(index)


@given(strided_slices())
def test_a_strided_slice_is_numpys_and_its_gradient_and_update_hit_the_same_places(
    case: tuple[Array, list[Any], dict[str, Any], tuple[Any, ...]],
) -> None:
    x, lists, masks, index = case
    cut = check_shapes("StridedSlice", x, *lists, **masks)
    whole = (*index, ...) if ... not in index else index
    assert same(cut, x[whole])
    spread = check_shapes("StridedSliceGrad", ints(*x.shape), *lists, np.asarray(cut), **masks)
    assert same(run("StridedSlice", spread, *lists, **masks), cut)
    updated = check_shapes("TensorStridedSliceUpdate", x, *lists, np.asarray(cut), **masks)
    assert same(updated, x)


@pytest.mark.parametrize(
    ("lists", "masks", "message"),
    [
        ((ints(5), ints(6), ints(1)), {"shrink_axis_mask": 1}, "slice index 5 of dimension 0 out of bounds."),
        ((ints(-3), ints(1), ints(1)), {"shrink_axis_mask": 1}, "slice index -1 of dimension 0 out of bounds."),
        ((ints(0), ints(1), ints(-1)), {"shrink_axis_mask": 1}, "only stride 1 allowed on non-range indexing."),
        ((ints(0), ints(6), ints(0)), {}, "strides[0] must be non-zero"),
        ((ints(0, 0, 0),) * 2 + (ints(1, 1, 1),), {}, "Index out of range using input dim 2; input has only 2 dims"),
        ((ints(0, 0, 0),) * 2 + (ints(1, 1, 1),), {"ellipsis_mask": 3}, "Multiple ellipses in slice spec not allowed"),
        (
            (ints(0, 0), ints(1, 1), ints(1)),
            {},
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes [2], [2], and [1] instead.",
        ),
    ],
)
def test_a_strided_slice_refuses_in_these_words(lists: Any, masks: dict[str, Any], message: str) -> None:
    for x in (X, filled((2, 3), object, 0)):
        with pytest.raises(InvalidArgumentError) as caught:
            run("StridedSlice", x, *lists, **masks)
        assert caught.value.message == message


def test_what_is_known_of_a_strided_slice_without_its_bounds() -> None:
    assert shapes("StridedSlice", (4, 5), (1,), (1,), ints(1), shrink_axis_mask=1) == [(5,)]
    assert shapes("StridedSlice", (4, 5), (1,), (1,), ints(1)) == [(None, 5)]
    assert shapes("StridedSlice", (4, 5), (1,), (1,), ints(2), begin_mask=1, end_mask=1) == [(2, 5)]
    assert shapes("StridedSlice", (4, 5), (1,), (1,), (1,)) == [None]
    assert shapes("StridedSlice", (None, 5), ints(0), ints(1), ints(1)) == [(None, 5)]


@given(arrays(), st.data())
def test_a_slice_is_numpys(x: Array, data: st.DataObject) -> None:
    begin = [data.draw(st.integers(0, size)) for size in x.shape]
    sizes = [data.draw(st.integers(-1, size - first)) for size, first in zip(x.shape, begin, strict=True)]
    expected = x[tuple(slice(b, None if s == -1 else b + s) for b, s in zip(begin, sizes, strict=True))]
    assert same(check_shapes("Slice", x, ints(*begin), ints(*sizes)), np.asarray(expected, x.dtype))


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        (ints(0, 0), ints(3, 1), "Expected size[0] in [0, 2], but got 3"),
        (ints(0, 4), ints(1, -1), "Expected begin[1] in [0, 3], but got 4"),
        (
            ints(0),
            ints(1, -1),
            "Expected begin and size arguments to be 1-D tensors of size 2, but got shapes [1] and [2] instead.",
        ),
    ],
)
def test_a_slice_outside_is_refused(begin: Array, size: Array, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run("Slice", X, begin, size)
    assert caught.value.message == message


@given(arrays(least=1), st.data())
def test_concatenating_what_was_split_gives_it_back(x: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    first = data.draw(st.integers(0, x.shape[axis]))
    sizes = ints(first, 0, -1) if data.draw(st.booleans()) else ints(first, x.shape[axis] - first, 0)
    pieces = check_shapes("SplitV", x, sizes, np.int32(axis), num_split=3)
    assert same(check_shapes("ConcatV2", list(pieces), np.int32(axis)), x)
    assert same(check_shapes("Concat", np.int32(axis), list(pieces)), x)


@given(arrays(least=1, smallest=1), st.data())
def test_an_even_split_has_equal_pieces(x: Array, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    doubled = run("ConcatV2", [x, x], np.int64(axis))
    for piece in check_shapes("Split", np.int32(axis), doubled, num_split=2):
        assert same(piece, x)


@given(arrays(most=3), st.integers(1, 3), st.data())
def test_unpacking_what_was_packed_gives_it_back(x: Array, count: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    packed = check_shapes("Pack", [x] * count, axis=axis)
    assert same(packed, np.stack([x] * count, axis=axis))
    pieces = check_shapes("Unpack", packed, num=count, axis=axis)
    for piece in pieces if count > 1 else (pieces,):
        assert same(piece, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_go_through_pack_and_unpack(dtype: Any) -> None:
    x = filled((3,), dtype, 5)
    scalars = [x[i, ...][()] if dtype is not object else x[i, ...] for i in range(3)]
    assert same(check_shapes("Pack", scalars), x)
    assert [np.shape(y) for y in check_shapes("Unpack", x, num=3)] == [()] * 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("ConcatV2", [X, X[:, :2]], np.int32(0)), "ConcatOp : Dimension 1 in both shapes must be equal"),
        (("ConcatV2", [X, X[0]], np.int32(0)), "ConcatOp : Ranks of all input tensors should match"),
        (("ConcatV2", [X, X], np.int32(2)), "Expected concatenating dimensions in the range [-2, 2), but got 2"),
        (("ConcatV2", [X[0, 0], X[0, 0]], np.int32(0)), "Can't concatenate scalars"),
        (("Pack", [X, X[0]]), "Shapes of all inputs must match: values[0].shape = [2,3] != values[1].shape = [3]"),
    ],
)
def test_pieces_that_do_not_fit_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("call", "attrs", "message"),
    [
        (("Split", np.int32(0), X), {"num_split": 3}, "got split_dim 0 (size = 2) and num_split 3"),
        (("Split", np.int32(3), X), {"num_split": 3}, "-input rank(-2) <= split_dim < input rank (2), but got 3"),
        (("SplitV", X, ints(1, 3), np.int32(1)), {"num_split": 2}, "Determined shape must either match"),
        (("SplitV", X, ints(-1, -1), np.int32(1)), {"num_split": 2}, "There can only be one -1 in the input."),
        (("Unpack", X), {"num": 3}, "Input shape axis 0 must equal 3, got shape [2,3]"),
        (("Unpack", X[0, 0]), {"num": 1}, "axis = 0 not in [0, 0)"),
    ],
)
def test_cuts_that_do_not_come_out_even_are_refused(call: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call, **attrs)
    assert message in caught.value.message


def test_partly_known_shapes_are_put_together() -> None:
    assert shapes("ConcatV2", [(None, 3), (2, None)], np.int32(0)) == [(None, 3)]
    assert shapes("ConcatV2", [(None, 3), None], (), N=2, T=DataType.FLOAT) == [(None, None)]
    assert shapes("Pack", [(None, 3), (2, None)], axis=-1) == [(2, 3, 2)]
    assert shapes("Split", (), (4, 6), num_split=2) == [(None, None)] * 2
    assert shapes("Unpack", (None, 6), num=2) == [(6,), (6,)]
    assert shapes("SplitV", (None, 6), (2,), np.int32(1), num_split=2) == [(None, None)] * 2


def test_strings_keep_their_zero_bytes() -> None:
    x = texts(b"a\0", b"\0")
    assert run("Unpack", x, num=2)[0].item() == b"a\0"
    assert run("StridedSlice", x, ints(1), ints(2), ints(1), shrink_axis_mask=1).item() == b"\0"
