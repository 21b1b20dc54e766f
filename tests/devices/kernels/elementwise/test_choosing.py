"""The choice by bits is that of `np.where`, bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from partita.devices.kernels.elementwise.choosing import choose
from partita.graph.dtypes import Array

TYPES = (
    np.bool_,
    np.uint8,
    np.int16,
    np.float16,
    ml_dtypes.bfloat16,
    np.float32,
    np.int64,
    np.complex64,
    np.complex128,
)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", [((70, 50),) * 3, ((70, 1), (50,), ()), ((70, 50), (), (70, 50)), ((3,), (3,), ())])
def test_choices(dtype: type, shapes: tuple[tuple[int, ...], ...]) -> None:
    """Of all types, with shapes that broadcast, and for views that are not contiguous."""
    rng = np.random.default_rng(0)
    condition = rng.random((*shapes[0], 40))[..., 7] > 0.5
    values: list[Array] = [np.array(rng.integers(-9, 9, shape), dtype) for shape in shapes[1:]]
    then, other = values
    got = choose(condition, then, other)
    assert got.dtype == then.dtype
    assert np.asarray(got).tobytes() == np.where(condition, then, other).tobytes()


def test_bits_are_kept() -> None:
    """Minus zero, infinities, and the bits of what is not a number."""
    then = np.array([-0.0, np.inf, np.nan, 1] * 1000, np.float32)
    other = np.array([0x7FC12345, 0x80000000, 1, 0] * 1000, np.uint32).view(np.float32)
    condition = np.arange(4000) % 3 == 0
    assert choose(condition, then, other).tobytes() == np.where(condition, then, other).tobytes()
    with pytest.raises(ValueError, match="broadcast"):
        choose(condition, then, other[:7])
