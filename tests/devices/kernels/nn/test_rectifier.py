"""The rectifier gives the bits of `np.maximum(x, 0)`, whatever path an array takes."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.kernels.nn.rectifier import rectified


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int32])
@pytest.mark.parametrize("shape", [(), (5,), (8192,), (8193,), (3, 40000), (7, 0), (10000, 7)])
def test_bits_are_those_of_a_maximum(shape: tuple[int, ...], dtype: type[np.generic]) -> None:
    """In any order of axes, in place or not; not a number and minus zero too."""
    values = np.asarray(np.random.default_rng(0).standard_normal(shape) * 100)
    x = values.astype(dtype)
    if x.ndim and x.dtype.kind == "f":
        x.reshape(-1)[::3], x.reshape(-1)[1::5] = np.nan, -0.0
    for order in (x, x.T, x[::-1] if x.ndim else x):
        expected = np.maximum(order, order.dtype.type(0))
        result = rectified(order)
        assert result.dtype == x.dtype
        assert result.tobytes() == expected.tobytes()
        buffer = order.copy()
        rectified(buffer, out=buffer)
        assert buffer.tobytes() == expected.tobytes()
