"""Blocks, depths and patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.random_arrays import filled, ints, same, shapes_of

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)


@given(st.data())
def test_blocks_go_to_the_batch_and_back(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 3))
    blocks = [data.draw(st.integers(1, 3)) for _ in range(count)]
    shape = [
        data.draw(st.integers(0, 2)),
        *(data.draw(st.integers(0, 4)) for _ in blocks),
        *data.draw(shapes_of(most=2)),
    ]
    before = [data.draw(st.integers(0, 2)) for _ in blocks]
    after = [-(size + b) % block for size, b, block in zip(shape[1:], before, blocks, strict=False)]
    widths = np.array([before, after], np.int64).T.reshape(count, 2)
    x = filled(shape, data.draw(st.sampled_from([np.float32, np.int8, object])), 1)
    there = check_shapes("SpaceToBatchND", x, ints(*blocks), widths)
    assert there.shape[0] == shape[0] * int(np.prod(blocks))
    assert same(check_shapes("BatchToSpaceND", there, ints(*blocks), widths), x)


@given(st.integers(2, 3), st.integers(0, 2), st.integers(0, 2), st.sampled_from(["NHWC", "NCHW"]))
def test_space_goes_to_depth_and_back(block: int, rows: int, columns: int, layout: str) -> None:
    sizes = (2, rows * block, columns * block, 3) if layout == "NHWC" else (2, 3, rows * block, columns * block)
    x = filled(sizes, np.float32, 2)
    there = check_shapes("SpaceToDepth", x, block_size=block, data_format=layout)
    assert same(check_shapes("DepthToSpace", there, block_size=block, data_format=layout), x)


def test_layouts_agree_on_the_order_of_the_depth() -> None:
    x = filled((2, 4, 6, 3), np.float32, 2)
    last = run("SpaceToDepth", x, block_size=2)
    first = run("SpaceToDepth", x.transpose(0, 3, 1, 2), block_size=2, data_format="NCHW")
    assert same(first.transpose(0, 2, 3, 1), last)
    assert last[0, 0, 0].tolist() == x[0, :2, :2].reshape(-1).tolist()
    with pytest.raises(UnimplementedError):
        run("SpaceToDepth", x, block_size=2, data_format="NCHW_VECT_C")


def test_square_blocks_are_the_general_ones() -> None:
    pads = np.array([[1, 1], [2, 2]], np.int32)
    actual = check_shapes("SpaceToBatch", IMAGE, pads, block_size=2)
    assert same(actual, run("SpaceToBatchND", IMAGE, ints(2, 2), pads))
    assert same(check_shapes("BatchToSpace", actual, pads, block_size=2), IMAGE)


@pytest.mark.parametrize(
    ("call", "attrs", "message"),
    [
        (
            ("SpaceToBatchND", IMAGE, ints(2, 2), np.array([[0, 0], [1, 0]])),
            {},
            "padded_shape[1]=5 is not divisible by block_shape[1]=2",
        ),
        (
            ("BatchToSpaceND", IMAGE, ints(3, 2), np.zeros((2, 2), np.int32)),
            {},
            "Input batch dimension (1) is not divisible by product of block sizes (6)",
        ),
        (("SpaceToDepth", IMAGE), {"block_size": 3}, "Image width 4 and height 4 should be divisible by block_size: 3"),
        (("DepthToSpace", IMAGE), {"block_size": 2}, "Input depth dimension 1 should be divisible by: 4"),
    ],
)
def test_what_does_not_fit_is_refused_in_these_words(call: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        run(*call, **attrs)
    assert caught.value.message == message


@given(st.integers(1, 3), st.integers(1, 2), st.integers(1, 2), st.sampled_from(["SAME", "VALID"]))
def test_patches_are_the_windows_of_the_image(size: int, stride: int, rate: int, padding: str) -> None:
    x = filled((2, 6, 5, 2), np.float32, 1)
    attrs = {"ksizes": [1, size, 2, 1], "strides": [1, stride, 1, 1], "rates": [1, rate, 1, 1]}
    actual = check_shapes("ExtractImagePatches", x, padding=padding, **attrs)
    if padding == "VALID":
        for row, column in np.ndindex(*actual.shape[1:3]):
            window = x[:, row * stride : row * stride + (size - 1) * rate + 1 : rate, column : column + 2]
            assert same(actual[:, row, column], window.reshape(2, -1))
    else:
        assert actual.shape[1:3] == (-(-6 // stride), 5)


def test_shapes_leave_open_what_values_decide() -> None:
    assert shapes("SpaceToBatchND", (1, 4, 4), (2,), (2, 2)) == [(None, None, None)]
    assert shapes("BatchToSpaceND", (4, None, 2), ints(2, 2), np.zeros((2, 2), np.int32)) == [(1, None, 4)]
    assert shapes("MatrixDiagPartV3", (5, 3, 4), (), ()) == [None]
    assert shapes("MatrixDiagPartV3", (5, 3, 4), ints(0, 1), ()) == [(5, 2, 3)]
    assert shapes(
        "ExtractImagePatches",
        (None, 5, 5, 2),
        ksizes=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        rates=[1] * 4,
        padding="VALID",
    ) == [(None, 2, 2, 8)]
