"""Column sums, means and inverse roots: near the true values, in the stated order, and with TensorFlow's bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from partita.devices.kernels.nn.column_sums import column_means, column_sums, inverse_roots
from partita.graph.dtypes import Array

MATRICES = st.builds(
    lambda rows, columns, seed: np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32),
    st.integers(1, 40),
    st.integers(1, 20),
    st.integers(0, 999),
)


@given(MATRICES)
def test_rows_are_added_one_after_the_other(matrix: Array) -> None:
    """Bit for bit what a running sum ends with."""
    np.testing.assert_array_equal(column_sums(matrix), np.cumsum(matrix, axis=0, dtype=np.float32)[-1])


@given(MATRICES)
def test_means_are_near_the_true_ones(matrix: Array) -> None:
    """Whichever way the rows and columns divide."""
    np.testing.assert_allclose(column_means(matrix), matrix.mean(axis=0, dtype=np.float64), rtol=1e-5, atol=1e-6)


@given(MATRICES)
def test_columns_beyond_whole_registers_have_one_running_sum(matrix: Array) -> None:
    """And the others do not depend on them."""
    whole = matrix.shape[1] // 8 * 8
    means = column_means(matrix)
    singly = column_sums(matrix[:, whole:]) * (np.float32(1) / np.float32(len(matrix)))
    np.testing.assert_array_equal(means[whole:], singly)
    np.testing.assert_array_equal(means[:whole], column_means(matrix[:, :whole]))


def test_means_have_tensorflows_bits() -> None:
    """Those of FusedBatchNormV3 of TensorFlow 2.21, which adds 12 rows one by one and 18 rows four at a time."""
    roots = np.sqrt(np.arange(2, 164, dtype=np.float64)).astype(np.float32)
    assert column_means(roots[:108].reshape(12, 9)).view(np.uint32).tolist() == [
        *(0x40D6B02F, 0x40D9CA7A, 0x40DCB900, 0x40DF88CB, 0x40E240BB, 0x40E4E51C, 0x40E778D0, 0x40E9FDF7, 0x40EC7624)
    ]
    assert column_means(roots.reshape(18, 9)).view(np.uint32).tolist() == [
        *(0x4104D999, 0x41061DDC, 0x4107534E, 0x41087E47, 0x4109A114, 0x410ABD25, 0x410BD36F, 0x410CE4A8, 0x410DF157)
    ]


def test_large_matrices_are_added_by_blas() -> None:
    """To the same sums but for rounding; an empty matrix sums to zeros."""
    matrix = np.random.default_rng(0).normal(size=(1 << 13, 5)).astype(np.float32)
    np.testing.assert_allclose(column_sums(matrix), matrix.sum(axis=0, dtype=np.float64), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(column_means(matrix), matrix.mean(axis=0, dtype=np.float64), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(column_sums(matrix[:0]), np.zeros(5))


@given(st.lists(st.floats(2.0**-100, 2.0**100, width=32), min_size=1, max_size=20))
def test_inverse_roots_are_a_few_units_off_at_most(numbers: list[float]) -> None:
    """Those beyond the last whole register are the nearest numbers but for two roundings."""
    values = np.array(numbers, np.float32)
    roots = inverse_roots(values)
    assert roots.dtype == np.float32
    np.testing.assert_allclose(roots, 1 / np.sqrt(values.astype(np.float64)), rtol=6 * 2.0**-24)
    rest = values[len(values) // 8 * 8 :]
    np.testing.assert_array_equal(roots[len(roots) - len(rest) :], np.float32(1) / np.sqrt(rest))


def test_inverse_roots_have_tensorflows_bits() -> None:
    """What Rsqrt of TensorFlow 2.21 gives for eight numbers at once; for one alone it is the exact quotient."""
    values = np.array([0.1, 0.25, 0.5, 1, 1.5, 2, 3, 10], np.float32)
    bits = [0x404A62C2, 0x3FFFFFFE, 0x3FB504F2, 0x3F7FFFFE, 0x3F5105EB, 0x3F3504F2, 0x3F13CD3A, 0x3EA1E89A]
    np.testing.assert_array_equal(inverse_roots(values).view(np.uint32), np.array(bits, np.uint32))


def test_inverse_roots_at_the_ends() -> None:
    """Of zero infinite, of infinity zero, of a negative number none."""
    values = np.array([0, np.inf, -1, 1, 1, 1, 1, 1], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(inverse_roots(values), [np.inf, 0, np.nan, 1, 1, 1, 1, 1], rtol=1e-6)
