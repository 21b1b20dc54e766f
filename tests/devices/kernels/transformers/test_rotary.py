"""Rotary positions turn pairs: as complex numbers are multiplied, and back again."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

TYPES = {"float64": 1e-12, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}


def tables(positions: int, pairs: int) -> tuple[Array, Array]:
    """Cosines and sines of angles as rotary positions have them."""
    angles = np.outer(np.arange(positions), 10.0 ** -np.arange(pairs))
    return np.cos(angles), np.sin(angles)


@given(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 2), st.integers(0, 7)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(sorted(TYPES)),
    st.data(),
)
def test_pairs_are_complex_numbers(
    shape: tuple[int, ...], interleaved: bool, inverse: bool, t: str, data: st.DataObject
) -> None:
    """(a + i b) (cos + i sin), or with -sin; elements beyond the pairs stay bit for bit."""
    half = data.draw(st.integers(0, shape[3] // 2))
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype(getattr(ml_dtypes, t, t))
    cosines, sines = tables(shape[1], half)
    y = check_shapes("Partita>Rotary", x, cosines, sines, interleaved=interleaved, inverse=inverse)
    wide = x.astype(np.float64)
    pairs = [slice(0, 2 * half, 2), slice(1, 2 * half, 2)] if interleaved else [slice(half), slice(half, 2 * half)]
    turned = (wide[..., pairs[0]] + 1j * wide[..., pairs[1]]) * (cosines + (-1j if inverse else 1j) * sines)[:, None]
    for part, wanted in zip(pairs, (turned.real, turned.imag), strict=True):
        np.testing.assert_allclose(y[..., part].astype(np.float64), wanted, TYPES[t], TYPES[t])
    np.testing.assert_array_equal(y[..., 2 * half :], x[..., 2 * half :])
    first = run(
        "Partita>Rotary", x.swapaxes(0, 1), cosines, sines, interleaved=interleaved, inverse=inverse,
        sequence_first=True,
    )  # fmt: skip
    np.testing.assert_array_equal(first.swapaxes(0, 1), y)


@pytest.mark.parametrize("interleaved", [False, True])
def test_turning_back(interleaved: bool) -> None:
    """The inverse gives x again; products of queries and keys depend on the distance of their positions alone."""
    cosines, sines = tables(9, 3)
    x = np.random.default_rng(1).standard_normal((1, 9, 2, 6))
    y = run("Partita>Rotary", x, cosines, sines, interleaved=interleaved)
    back = run("Partita>Rotary", y, cosines, sines, interleaved=interleaved, inverse=True)
    np.testing.assert_allclose(back, x, 1e-12, 1e-12)
    query, key = (np.broadcast_to(x[:, at : at + 1], x.shape) for at in (0, 1))
    turned = [run("Partita>Rotary", z, cosines, sines, interleaved=interleaved)[0, :, 0] for z in (query, key)]
    products = turned[0] @ turned[1].T
    np.testing.assert_allclose(products[1:, 1:], products[:-1, :-1], 1e-12, 1e-12)


def test_half_types_take_tables_of_float32() -> None:
    """One rounding: float16 turned by float32 tables is float32 turned, then rounded."""
    cosines, sines = (table.astype(np.float32) for table in tables(50, 4))
    x = np.random.default_rng(2).standard_normal((1, 50, 1, 8)).astype(np.float16)
    exact = run("Partita>Rotary", x.astype(np.float32), cosines, sines)
    np.testing.assert_array_equal(run("Partita>Rotary", x, cosines, sines), exact.astype(np.float16))


def test_wrong_inputs_are_named() -> None:
    """In the step too, where shapes were unknown before it."""
    x, (cosines, sines) = np.ones((1, 3, 1, 4), np.float32), (table.astype(np.float32) for table in tables(3, 2))
    with pytest.raises(InvalidArgumentError, match="x must have rank 4"):
        run("Partita>Rotary", x[0], cosines, sines)
    with pytest.raises(InvalidArgumentError, match="x has 3 positions and cosines 2 rows"):
        run("Partita>Rotary", x, cosines[:2], sines[:2])
    with pytest.raises(InvalidArgumentError, match="for 4 elements of a head, but x has 3"):
        run("Partita>Rotary", x[..., :3], cosines, sines)
