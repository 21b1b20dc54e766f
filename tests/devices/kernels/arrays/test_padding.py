"""Borders around arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import arrays, filled, ints, same

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def widths(rank: int) -> st.SearchStrategy[Array]:
    """Paddings for an array of that rank."""
    pair = st.tuples(st.integers(0, 3), st.integers(0, 3))
    return st.lists(pair, min_size=rank, max_size=rank).map(lambda v: np.array(v, np.int32).reshape(rank, 2))


@given(arrays(), st.data())
def test_the_middle_of_a_padded_array_is_the_input_and_the_rest_is_the_value(x: Array, data: st.DataObject) -> None:
    pads = data.draw(widths(x.ndim))
    value = filled((), object if x.dtype == object else x.dtype, 3)
    inside = tuple(slice(b, b + n) for (b, _), n in zip(pads.tolist(), x.shape, strict=True))
    for actual, filler in (
        (check_shapes("Pad", x, pads), b"" if x.dtype == object else 0),
        (check_shapes("PadV2", x, pads.astype(np.int64), value), value.item()),
    ):
        assert same(actual[inside] if x.ndim else actual, x)
        outside = np.ones(actual.shape, np.bool_)
        outside[inside] = False
        assert (actual[outside] == filler).all()


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@given(x=arrays(smallest=1, most=3, dtypes=(np.float64, np.int64)), data=st.data())
def test_mirror_padding_is_numpys_and_its_gradient_is_the_transposed_map(
    mode: str, x: Array, data: st.DataObject
) -> None:
    most = [size - (mode == "REFLECT") for size in x.shape]
    pads = np.array([[data.draw(st.integers(0, m)) for _ in "ab"] for m in most], np.int32).reshape(x.ndim, 2)
    actual = check_shapes("MirrorPad", x, pads, mode=mode)
    assert same(actual, np.pad(x, pads.tolist(), mode=mode.lower()) if x.ndim else x)  # type: ignore[call-overload]  # a mode from a variable
    dy = filled(actual.shape, np.float64, 1)
    back = check_shapes("MirrorPadGrad", dy, pads, mode=mode)
    assert np.vdot(dy, actual.astype(np.float64)) == np.vdot(back, x.astype(np.float64))


@pytest.mark.parametrize(
    ("call", "attrs", "message"),
    [
        (("Pad", X, ints(1, 1)), {}, "paddings must be a matrix with 2 columns: [2]"),
        (("Pad", X, ints(1, 1)[None]), {}, "The first dimension of paddings must be the rank of inputs[1,2] [2,3]"),
        (("Pad", X, np.array([[1, -1], [0, 0]], np.int32)), {}, "Paddings must be non-negative: 1 -1"),
        (
            ("MirrorPad", X, np.array([[2, 1], [0, 0]], np.int32)),
            {"mode": "REFLECT"},
            "paddings must be less than the dimension size: 2, 1 not less than 2",
        ),
        (
            ("MirrorPad", X, np.array([[3, 1], [0, 0]], np.int32)),
            {"mode": "SYMMETRIC"},
            "paddings must be no greater than the dimension size: 3, 1 greater than 2",
        ),
        (("ReverseV2", X, ints(0, -2)), {}, "axis 0 specified more than once."),
        (("ReverseV2", X, ints(2)), {}, "'axis'[0] = 2 is out of valid range [0, 1"),
        (("ReverseSequence", X, ints(2, 4)), {"seq_dim": 1}, "seq_lens(1) > input.dims(1)"),
        (("ReverseSequence", X, ints(2)), {"seq_dim": 1}, "Length of seq_lengths != input.dims(0), (1 vs. 2)"),
        (("Roll", X, np.int32(1), ints(0, 1)), {}, "shift and axis must have the same size"),
        (("Roll", X, np.int32(1), np.int32(3)), {}, "axis 3 is out of range"),
    ],
)
def test_what_does_not_fit_is_refused_in_these_words(call: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call, **attrs)
    assert caught.value.message == message


def test_shapes_with_unknown_widths_keep_the_rank() -> None:
    assert shapes("Pad", (2, None), (2, 2)) == [(None, None)]
    assert shapes("Pad", None, (2, 2)) == [(None, None)]
    assert shapes("Pad", (2, None), np.ones((2, 2), np.int32)) == [(4, None)]
    assert shapes("MirrorPadGrad", (4, None), np.ones((2, 2), np.int32), mode="REFLECT") == [(2, None)]
