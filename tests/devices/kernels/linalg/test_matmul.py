"""Matrix products agree with float64 arithmetic on the same numbers, whatever is transposed or stacked."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes
from tests.devices.kernels.linalg.matrices import numbers

SIZE = st.integers(0, 5)
DTYPES = ["float16", "float32", "float64", "int32", "int64", "complex64", "complex128"]


@given(SIZE, SIZE, SIZE, st.booleans(), st.booleans(), st.sampled_from(DTYPES), st.integers(0, 99))
def test_matmul_is_the_product_of_the_matrices_as_read(
    m: int, k: int, n: int, ta: bool, tb: bool, dtype: str, seed: int
) -> None:
    """Small integers are exact in every type, so the comparison is exact too."""
    a, b = numbers(seed, m, k, dtype=dtype), numbers(seed + 1, k, n, dtype=dtype)
    got = check_shapes("MatMul", a.T if ta else a, b.T if tb else b, transpose_a=ta, transpose_b=tb)
    np.testing.assert_array_equal(got, np.einsum("mk,kn->mn", a, b))


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 3)), max_size=3), st.booleans(), st.integers(0, 9)
)
def test_stacks_broadcast_and_adjoints_are_conjugate(
    axes: list[tuple[bool, bool, int]], adjoint: bool, seed: int
) -> None:
    """A stack of size 1 serves the whole of the other operand's axis."""
    x = numbers(seed, *(1 if one else size for one, _, size in axes), 2, 3, dtype="complex64")
    y = numbers(seed + 1, *(1 if one else size for _, one, size in axes), 3, 4, dtype="complex64")
    given_x = x.swapaxes(-1, -2).conj() if adjoint else x
    got = check_shapes("BatchMatMulV2", given_x, y, adj_x=adjoint)
    np.testing.assert_array_equal(got, x @ y)


def test_bytes_multiply_into_a_wider_type() -> None:
    """BatchMatMulV3 widens before it multiplies, so nothing wraps around."""
    x = np.full((1, 2, 3), 100, np.int8)
    got = run("BatchMatMulV3", x, x.swapaxes(1, 2), Tout=DataType.INT32)
    np.testing.assert_array_equal(got, np.full((1, 2, 2), 30000))


def test_sparse_matmul_mixes_float_and_bfloat16() -> None:
    """The promise of many zeros changes nothing but the element types."""
    a = numbers(0, 3, 4)
    half = a.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run("SparseMatMul", half, a, transpose_b=True), a @ a.T)


@pytest.mark.parametrize(
    ("op", "x", "y", "message"),
    [
        ("MatMul", (2, 3), (4, 5), "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]"),
        ("MatMul", (2,), (2, 3), "In[0] and In[1] has different ndims: [2] vs. [2,3]"),
        ("MatMul", (2, 2, 3), (2, 3, 3), "In[0] and In[1] ndims must be == 2: 3"),
        ("BatchMatMul", (2, 2, 3), (3, 3, 3), "In[0].dim(0) and In[1].dim(0) must be the same: [2,2,3] vs [3,3,3]"),
        ("BatchMatMulV2", (3,), (3, 3), "In[0] ndims must be >= 2: 1"),
        (
            "BatchMatMulV2",
            (2, 2, 3),
            (3, 3, 3),
            "In[0] and In[1] must have compatible batch dimensions: [2,2,3] vs. [3,3,3]",
        ),
    ],
)
def test_operands_that_do_not_fit_are_named(op: str, x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    """The message is TensorFlow's."""
    with pytest.raises(InvalidArgumentError) as caught:
        run(op, np.ones(x, np.float32), np.ones(y, np.float32))
    assert caught.value.message == message


def test_unknown_sizes_stay_unknown() -> None:
    """One known rank gives the other's if batches must be equal."""
    assert shapes("MatMul", None, (3, None)) == [(None, None)]
    assert shapes("BatchMatMul", None, (2, 3, 4)) == [(2, None, 4)]
    assert shapes("BatchMatMulV2", None, (2, 3, 4)) == [None]
    assert shapes("Einsum", [(None, 2), None], equation="ab,bc->ac") == [(None, None)]


@settings(max_examples=20)
@given(st.sampled_from(["float16", "bfloat16"]), st.integers(1, 300), st.integers(0, 9))
def test_half_types_round_once(dtype: str, depth: int, seed: int) -> None:
    """A long sum of halves is within one rounding of the exact one, which it would not be if each step rounded."""
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(np.float16)
    a = np.random.default_rng(seed).random((1, depth)).astype(kind)
    exact = (a.astype(np.float64) @ a.astype(np.float64).T).item()
    got = float(run("MatMul", a, a, transpose_b=True).item())
    step = float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]  # ml_dtypes leaves it without types
    assert abs(got - exact) <= 1.01 * step * abs(exact)
