"""Dots contract and batch any axes; convolutions have any layout, border, dilation and groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run
from tests.devices.kernels.xla.test_slices import message

CHANNELS_LAST = message(f11=[1, 2], f6=[0, 1], f12=[1, 2]) + bytes(
    [3 << 3, 2, 4 << 3, 3, 7 << 3, 0, 8 << 3, 3, 9 << 3, 0, 10 << 3, 3]
)


@given(st.integers(0, 99))
def test_a_dot_is_an_einsum(seed: int) -> None:
    """Batch axes first, then the free ones of both sides."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 5, 3))
    numbers = message(f1=[2], f2=[0], f3=[1], f4=[2])
    got = check_shapes("XlaDot", a, b, dimension_numbers=numbers, precision_config="")
    np.testing.assert_allclose(got, np.einsum("ibk,kjb->bij", a, b), rtol=1e-12)


def test_products_of_bytes_in_a_wider_type() -> None:
    """The type of the result is that of the sums."""
    a = np.full((1, 3), 100, np.int8)
    attrs: dict[str, Any] = {"dimension_numbers": message(f1=[1], f2=[1]), "precision_config": ""}
    got = check_shapes("XlaDotV2", a, a, preferred_element_type=DataType.INT32, **attrs)
    assert (got.tolist(), got.dtype) == ([[30000]], np.int32)
    bits = a.astype(np.float16)
    wide = run("XlaDotV2", bits, bits, preferred_element_type=DataType.FLOAT, **attrs)
    assert (wide.tolist(), wide.dtype) == ([[30000]], np.float32)


@given(st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.integers(0, 99))
def test_a_plain_convolution_is_conv2d(stride: int, groups: int, seed: int) -> None:
    """With the same border, dilation and groups."""
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, 7, 6, 2 * groups)), rng.normal(size=(3, 2, 2, 4))
    ones = np.ones(2, np.int32)
    border = np.array([[1, 2], [0, 1]], np.int32)
    got = check_shapes(
        "XlaConvV2",
        *(x, w, stride * ones, border, ones, np.array([2, 1], np.int32), np.int32(groups)),
        dimension_numbers=CHANNELS_LAST,
        precision_config="",
        preferred_element_type=DataType.DOUBLE,
    )
    expected = run(
        "Conv2D",
        *(x, w),
        strides=[1, stride, stride, 1],
        dilations=[1, 2, 1, 1],
        padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0],
    )
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_dilating_the_image_undoes_a_stride() -> None:
    """A window of one cell over spread cells sees them and zeros; dropped cells are not seen."""
    x, w = np.arange(1.0, 5).reshape(1, 2, 2, 1), np.ones((1, 1, 1, 1))
    ones = np.ones(2, np.int32)
    attrs: dict[str, Any] = {"dimension_numbers": CHANNELS_LAST, "precision_config": ""}
    spread = run("XlaConv", x, w, ones, np.zeros((2, 2), np.int32), 2 * ones, ones, np.int32(1), **attrs)
    assert spread[0, :, :, 0].tolist() == [[1, 0, 2], [0, 0, 0], [3, 0, 4]]
    cut = run("XlaConv", x, w, ones, np.array([[-1, 0], [0, 1]], np.int32), ones, ones, np.int32(1), **attrs)
    assert cut[0, :, :, 0].tolist() == [[3, 4, 0]]


def test_groups_of_images() -> None:
    """Each half of the features reads its own half of the batch."""
    x, w = np.array([2.0, 3.0]).reshape(2, 1, 1, 1), np.array([10.0, 100.0]).reshape(1, 1, 1, 2)
    ones = np.ones(2, np.int32)
    got = run(
        "XlaConvV2",
        *(x, w, ones, np.zeros((2, 2), np.int32), ones, ones, np.int32(1)),
        dimension_numbers=CHANNELS_LAST,
        precision_config="",
        preferred_element_type=DataType.DOUBLE,
        batch_group_count=2,
    )
    assert got.reshape(-1).tolist() == [20, 300]


def test_features_must_fit() -> None:
    """The filter has the image's features divided by the groups."""
    ones = np.ones(2, np.int32)
    x, w = np.ones((1, 2, 2, 3)), np.ones((1, 1, 2, 1))
    with pytest.raises(InvalidArgumentError, match="Expected the input features 3 to be 1 times"):
        run(
            "XlaConv",
            *(x, w, ones, np.zeros((2, 2), np.int32), ones, ones, np.int32(1)),
            dimension_numbers=CHANNELS_LAST,
            precision_config="",
        )
