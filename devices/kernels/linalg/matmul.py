"""Matrix products: MatMul, the batched forms and SparseMatMul.

Operands are never copied to be transposed (BLAS reads either order); half types are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..half_types import in_float32, is_half, widen
from ..registry import Construction, Kernel, kernel
from .products import batch_product, matrix_product

BinaryKernel = Callable[[Array, Array], Array]


def _sizes_clash(a: Array, b: Array) -> InvalidArgumentError:
    return InvalidArgumentError(f"Matrix size-incompatible: In[0]: {shape_text(a.shape)}, In[1]: {shape_text(b.shape)}")


def _check_equal_ranks(a: Array, b: Array) -> None:
    if a.ndim != b.ndim:
        raise InvalidArgumentError(
            f"In[0] and In[1] has different ndims: {shape_text(a.shape)} vs. {shape_text(b.shape)}"
        )


@kernel("MatMul")
def matmul(node: Construction) -> Kernel:
    """The product of two matrices, either of them transposed."""
    transpose_a, transpose_b = bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])
    inner_a, inner_b = int(not transpose_a), int(transpose_b)

    def product(a: Array, b: Array) -> Array:
        if not a.ndim == b.ndim == 2:
            _check_equal_ranks(a, b)
            raise InvalidArgumentError(f"In[0] and In[1] ndims must be == 2: {a.ndim}")
        if a.shape[inner_a] != b.shape[inner_b]:
            raise _sizes_clash(a, b)
        return matrix_product(a.T if transpose_a else a, b.T if transpose_b else b)

    return in_float32(product, node.output_types[0])


def _adjoint(a: Array) -> Array:
    swapped = a.swapaxes(-1, -2)
    return swapped.conj() if swapped.dtype.kind == "c" else swapped


def _batched(node: Construction) -> BinaryKernel:
    adjoint_x, adjoint_y = bool(node.attrs["adj_x"]), bool(node.attrs["adj_y"])

    def product(x: Array, y: Array) -> Array:
        left, right = (_adjoint(x) if adjoint_x else x), (_adjoint(y) if adjoint_y else y)
        if left.shape[-1] != right.shape[-2]:
            raise _sizes_clash(x, y)
        return batch_product(left, right)

    return product


@kernel("BatchMatMul")
def batch_matmul(node: Construction) -> Kernel:
    """The products of two batches of matrices with equal batch shapes."""
    multiply = _batched(node)

    def product(x: Array, y: Array) -> Array:
        _check_equal_ranks(x, y)
        require(x.ndim >= 2, f"In[0] and In[1] ndims must be >= 2: {x.ndim}")
        for axis, (m, n) in enumerate(zip(x.shape[:-2], y.shape[:-2], strict=True)):
            if m != n:
                raise InvalidArgumentError(
                    f"In[0].dim({axis}) and In[1].dim({axis}) must be the same: "
                    f"{shape_text(x.shape)} vs {shape_text(y.shape)}"
                )
        return multiply(x, y)

    return in_float32(product, node.output_types[0])


def _broadcasting(node: Construction) -> BinaryKernel:
    multiply = _batched(node)

    def product(x: Array, y: Array) -> Array:
        require(x.ndim >= 2, f"In[0] ndims must be >= 2: {x.ndim}")
        require(y.ndim >= 2, f"In[1] ndims must be >= 2: {y.ndim}")
        for m, n in zip(x.shape[-3::-1], y.shape[-3::-1], strict=False):
            if m != n and m != 1 and n != 1:
                raise InvalidArgumentError(
                    "In[0] and In[1] must have compatible batch dimensions: "
                    f"{shape_text(x.shape)} vs. {shape_text(y.shape)}"
                )
        return multiply(x, y)

    return product


@kernel("BatchMatMulV2")
def batch_matmul_v2(node: Construction) -> Kernel:
    """The products of two batches of matrices whose batch shapes broadcast."""
    return in_float32(_broadcasting(node), node.output_types[0])


@kernel("BatchMatMulV3")
def batch_matmul_v3(node: Construction) -> Kernel:
    """As BatchMatMulV2, with an output type of its own: small integers are multiplied in that type."""
    multiply = _broadcasting(node)
    target = numpy_dtype(node.output_types[0])
    wide = np.dtype(np.float32) if is_half(target) else target

    def product(x: Array, y: Array) -> Array:
        return multiply(x.astype(wide, copy=False), y.astype(wide, copy=False)).astype(target, copy=False)

    return product


@kernel("SparseMatMul")
def sparse_matmul(node: Construction) -> Kernel:
    """The product of two matrices of float or bfloat16 in float; the sparsity flags change nothing."""
    transpose_a, transpose_b = bool(node.attrs["transpose_a"]), bool(node.attrs["transpose_b"])

    def product(a: Array, b: Array) -> Array:
        require(a.ndim == 2, "a is not a matrix")
        require(b.ndim == 2, "b is not a matrix")
        left, right = (a.T if transpose_a else a), (b.T if transpose_b else b)
        if left.shape[1] != right.shape[0]:
            raise InvalidArgumentError(f"Matrix size incompatible: a: {shape_text(a.shape)}, b: {shape_text(b.shape)}")
        return matrix_product(widen(left), widen(right))

    return product
