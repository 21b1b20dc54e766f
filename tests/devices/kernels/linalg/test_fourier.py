"""Fourier transforms: inverses of each other, equal to the defining sums, cut and sized as asked."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType, from_numpy
from tests.devices.kernels.draws import COMPLEX_TYPES, filled
from tests.devices.kernels.harness import check_shapes, run, shapes

SUFFIXES = ["", "2D", "3D"]
SIZES = st.lists(st.integers(1, 5), min_size=3, max_size=4).map(tuple)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(size=SIZES, dtype=st.sampled_from(COMPLEX_TYPES), seed=st.integers(0, 99))
def test_the_inverse_transform_restores_the_signal(
    suffix: str, size: tuple[int, ...], dtype: np.dtype[Any], seed: int
) -> None:
    """In every precision, over one, two or three axes."""
    x = filled(dtype, size, seed)
    limit = 1e-4 if dtype == np.complex64 else 1e-11
    spectrum = check_shapes(f"FFT{suffix}", x)
    np.testing.assert_allclose(check_shapes(f"IFFT{suffix}", spectrum), x, rtol=limit, atol=limit)


def test_a_transform_is_its_sum() -> None:
    """Over exp(-2 pi i j k / n)."""
    x = filled(np.dtype(np.complex128), (7,), 0)
    j = np.arange(7)
    np.testing.assert_allclose(run("FFT", x), np.exp(-2j * np.pi * np.outer(j, j) / 7) @ x, rtol=1e-12)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(size=SIZES, single=st.booleans(), seed=st.integers(0, 99), data=st.data())
def test_real_transforms_are_halves_of_complex_ones(
    suffix: str, size: tuple[int, ...], single: bool, seed: int, data: st.DataObject
) -> None:
    """Of the signal cut to the length; the inverse restores what was cut."""
    rank = int(suffix[0]) if suffix else 1
    real, whole = (np.float32, np.complex64) if single else (np.float64, np.complex128)
    lengths = [data.draw(st.integers(1, n)) for n in size[-rank:]]
    x = filled(np.dtype(real), size, seed)
    spectrum = check_shapes(f"RFFT{suffix}", x, np.array(lengths, np.int32), Tcomplex=from_numpy(np.dtype(whole)))
    kept: tuple[EllipsisType | slice, ...] = (..., *(slice(n) for n in lengths))
    cut = x[kept]
    limit = 1e-4 if single else 1e-11
    full = run(f"FFT{suffix}", cut.astype(whole))
    np.testing.assert_allclose(spectrum, full[..., : lengths[-1] // 2 + 1], rtol=limit, atol=limit)
    back = check_shapes(f"IRFFT{suffix}", spectrum, np.array(lengths, np.int32), Treal=from_numpy(np.dtype(real)))
    np.testing.assert_allclose(back, cut, rtol=limit, atol=limit)


def test_a_transform_is_not_longer_than_its_input() -> None:
    """Inputs of too small a rank, and a wrong number of lengths, are refused too."""
    length = np.array([8], np.int32)
    with pytest.raises(InvalidArgumentError, match="Input dimension 0 must have length of at least 8 but got: 5"):
        run("RFFT", np.ones(5, np.float32), length)
    with pytest.raises(InvalidArgumentError, match="Input dimension 0 must have length of at least 5 but got: 4"):
        run("IRFFT", np.ones(4, np.complex64), length)
    with pytest.raises(InvalidArgumentError, match=r"fft_length must have shape \[1\]"):
        run("RFFT", np.ones(5, np.float32), np.array([2, 2], np.int32))
    with pytest.raises(InvalidArgumentError, match=r"Input must have rank of at least 2 but got: \[4\]"):
        run("FFT2D", np.ones(4, np.complex64))


def test_empty_transforms_are_empty() -> None:
    """Of empty signals, or of length zero."""
    assert check_shapes("RFFT", np.ones((2, 3), np.float32), np.array([0], np.int32)).shape == (2, 0)
    assert check_shapes("FFT", np.ones((0, 3), np.complex64)).shape == (0, 3)


def test_unknown_lengths_leave_unknown_sizes() -> None:
    """On the transformed axes only."""
    assert shapes("RFFT2D", (2, 3, 4), (2,), Tcomplex=DataType.COMPLEX64) == [(2, None, None)]
    assert shapes("IRFFT", None, (1,)) == [None]
