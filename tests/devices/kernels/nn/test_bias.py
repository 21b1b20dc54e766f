"""Biases go to their channels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=3),
        elements=st.floats(-9, 9, width=32),
    )
)
def test_bias_goes_to_its_channel_and_its_gradient_comes_back(value: Array) -> None:
    """Channels are last, or on axis 1; the gradient of a sum of the result is the count of each channel's elements."""
    layouts = [("NHWC", value.ndim - 1), ("NCHW", 1)]
    for layout, axis in layouts[: 1 if value.ndim == 2 else 2]:  # a matrix has no place for images' axes
        bias = np.arange(value.shape[axis], dtype=np.float32)
        shape = [1] * value.ndim
        shape[axis] = -1
        got = check_shapes("BiasAdd", value, bias, data_format=layout)
        np.testing.assert_array_equal(got, value + bias.reshape(shape))
        others = tuple(a for a in range(value.ndim) if a != axis)
        back = check_shapes("BiasAddGrad", value, data_format=layout)
        np.testing.assert_allclose(back, value.sum(axis=others), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("value", "bias", "message"),
    [
        ((3,), (3,), "Input tensor must be at least 2D: [3]"),
        ((2, 3), (3, 1), "Biases must be 1D: [3,1]"),
        ((2, 3), (2,), "Must provide as many biases as the last dimension of the input tensor: [2] vs. [2,3]"),
    ],
)
def test_biases_that_do_not_fit_are_named(value: tuple[int, ...], bias: tuple[int, ...], message: str) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run("BiasAdd", np.ones(value, np.float32), np.ones(bias, np.float32))
    assert caught.value.message == message
