"""Large products are cut by shape: the same bytes for any number of helpers, and equal to numpy's up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.devices.kernels.helpers import HELPERS
from partita.devices.kernels.linalg import products
from partita.devices.kernels.linalg.products import batch_product, cuts, matrix_product
from partita.graph.dtypes import Array

SIZES = st.sampled_from([1, 2, 7, 31, 64, 65, 100, 256])
DTYPES = st.sampled_from([np.float32, np.float64, np.complex64, np.int32])


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products are cut from a size at which tests are quick."""
    monkeypatch.setattr(products, "WORTH_CUTTING_US", 3.0)
    monkeypatch.setattr(products, "_SURELY_SHORT", 1 << 12)
    monkeypatch.setattr(products, "_HEAD_START_US", 1.0)
    products._blocks.cache_clear()
    products._batch_blocks.cache_clear()


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of helpers is that of the machine again after a test."""
    monkeypatch.setattr(HELPERS, "size", HELPERS.size)


def drawn(seed: int, shape: tuple[int, ...], dtype: type, *, turned: bool) -> Array:
    values = np.random.default_rng(seed).integers(-9, 9, (*shape[:-2], *shape[:-3:-1]) if turned else shape)
    scaled: Array = (values / (1 if np.issubdtype(dtype, np.integer) else 7)).astype(dtype)
    return scaled.swapaxes(-1, -2) if turned else scaled


def with_helpers(size: int, a: Array, b: Array) -> Array:
    HELPERS.size = size
    return batch_product(a, b)


def assert_same_for_all_pools(a: Array, b: Array) -> None:
    alone = with_helpers(0, a, b)
    np.testing.assert_allclose(alone, a @ b, rtol=1e-4, atol=1e-3)
    assert alone.dtype == (a @ b).dtype
    for size in (1, 3):
        assert with_helpers(size, a, b).tobytes() == alone.tobytes()


@given(SIZES, SIZES, SIZES, DTYPES, st.booleans(), st.booleans())
def test_matrices(rows: int, inner: int, columns: int, dtype: type, turned_a: bool, turned_b: bool) -> None:
    """Of any shape and layout."""
    a, b = drawn(0, (rows, inner), dtype, turned=turned_a), drawn(1, (inner, columns), dtype, turned=turned_b)
    assert_same_for_all_pools(a, b)


BATCHES = st.sampled_from([((3,), (3,)), ((4, 1), (3,)), ((1,), (5,)), ((2, 3), ()), ((), (6,)), ((1, 1), (1,))])


@settings(max_examples=30)
@given(BATCHES, st.sampled_from([1, 8, 64]), st.sampled_from([1, 8, 70]), DTYPES, st.booleans())
def test_batches(
    batches: tuple[tuple[int, ...], tuple[int, ...]], rows: int, columns: int, dtype: type, turned: bool
) -> None:
    """Whose leading axes broadcast."""
    a = drawn(0, (*batches[0], rows, 32), dtype, turned=turned)
    assert_same_for_all_pools(a, drawn(1, (*batches[1], 32, columns), dtype, turned=not turned))


@given(st.integers(0, 3000), st.integers(1, 40), st.sampled_from([1, 32]), st.floats(0, 0.3))
def test_cuts_cover_everything_once(size: int, parts: int, grain: int, first: float) -> None:
    """In order, without an empty slice, and with a grain of 32 without a narrow one."""
    slices = list(cuts(size, parts, grain, first))
    assert len(slices) <= max(1, parts)
    if size:
        assert [i for part in slices for i in range(part.start, part.stop)] == list(range(size))
        assert all(part.start < part.stop for part in slices)
    if len(slices) > 1:
        assert min(part.stop - part.start for part in slices) >= min(grain, 16)


def test_a_product_of_numpy_that_raises_raises_here() -> None:
    """The error of a block is that of the product."""
    a, b = np.empty((200, 100), object), np.empty((100, 200), object)
    a[...], b[...] = 1, None
    with pytest.raises(TypeError):
        matrix_product(a, b)
