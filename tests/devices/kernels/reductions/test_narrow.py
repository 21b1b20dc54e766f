"""Reductions of few columns, or over few numbers, have the bits of numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from partita.devices.kernels.reductions.narrow import reduce_extreme, reduce_few

Places = list[tuple[tuple[int, ...], tuple[int, ...]]]
SHAPES: Places = [((700, 5), (1,)), ((9, 9, 9, 3), (3,)), ((1200, 2), (1,)), ((400, 8), (1,)), ((7, 300), (0,))]
MIDDLES: Places = [
    ((3, 40, 50, 3), (1, 2)),
    ((2, 700, 7), (1,)),
    ((900, 2), (0,)),
    ((4, 5, 600, 1), (2,)),
    ((2, 3, 64, 3), (0, 2)),
]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_sums_of_few(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> None:
    """Up to seven numbers are added one after the other, as numpy adds them."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    for ufunc in (np.add, np.multiply):
        got = reduce_few(ufunc, x, axes, keep)
        assert got.ndim == (x.ndim if keep else x.ndim - len(axes))
        np.testing.assert_array_equal(got, np.asarray(ufunc.reduce(x, axes)).reshape(got.shape))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("shape", "axes"), SHAPES + MIDDLES)
def test_extremes(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> None:
    """Of numbers and of views; what is not a number wins."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.reshape(-1)[7] = np.nan
    for values in (x, x[::-1]):
        for ufunc, worst in ((np.maximum, -np.inf), (np.minimum, np.inf)):
            got = reduce_extreme(ufunc, values, axes, keep, worst)
            assert got.ndim == (x.ndim if keep else x.ndim - len(axes))
            np.testing.assert_array_equal(got, np.asarray(ufunc.reduce(values, axes)).reshape(got.shape))


def test_extremes_of_nothing() -> None:
    """The value that is given for it."""
    assert reduce_extreme(np.maximum, np.zeros((3, 0, 4), np.int32), (1,), True, -9).tolist() == [[[-9] * 4]] * 3
    assert reduce_extreme(np.minimum, np.zeros((2, 3), np.int32), (), False, 9).tolist() == [[0] * 3] * 2
