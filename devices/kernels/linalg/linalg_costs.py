"""Costs of matrix products, tensor contractions, factorisations and Fourier transforms.

A product of m x k and k x n counts 2*m*k*n, one multiplication and one addition per term (Golub and Van Loan, Matrix
Computations, section 1.1).
"""

from __future__ import annotations

from math import prod

from ..op_cost import CostContext, flops


@flops("MatMul", "SparseMatMul", "_FusedMatMul", "QuantizedMatMul", matrix=True)
def matmul(c: CostContext) -> int:
    """2*m*k*n; which axis is k depends on the transposition of the factor."""
    a = c.inputs[0]
    k = a[0] if c.attrs.get("transpose_a") else a[1]
    return 2 * k * c.elements_out()


@flops("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", matrix=True)
def batch_matmul(c: CostContext) -> int:
    """2*m*k*n for every matrix of the (broadcast) batch; k is the second to last axis of x if that is adjoint."""
    x = c.inputs[0]
    return 2 * x[-2 if c.attrs.get("adj_x") else -1] * c.elements_out()


@flops("Einsum", matrix=True)
def einsum(c: CostContext) -> int:
    """One multiplication per factor after the first and one addition for every point of the space of all labels."""
    sizes = _label_sizes(c)
    return len(c.inputs) * prod(sizes.values())


def _label_sizes(c: CostContext) -> dict[str, int]:
    """The size of each label; the axes of an ellipsis are labels counted from the right."""
    left = c.attrs["equation"].decode().replace(" ", "").split("->")[0]
    sizes: dict[str, int] = {}
    for term, dims in zip(left.split(","), c.inputs, strict=True):
        before, dots, after = term.partition("...")
        hidden = len(dims) - len(before) - len(after)
        labels = [*before, *(f"...{hidden - i}" for i in range(hidden) if dots), *after]
        for label, size in zip(labels, dims, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return sizes


@flops("Cholesky", matrix=True)
def cholesky(c: CostContext) -> int:
    """n**3 / 3 per matrix (Golub and Van Loan, section 4.2)."""
    return c.elements_in() * c.inputs[0][-1] // 3


@flops("MatrixInverse", matrix=True)
def matrix_inverse(c: CostContext) -> int:
    """2 * n**3 per matrix: LU factors and n solves (Golub and Van Loan, section 3.2)."""
    return 2 * c.elements_in() * c.inputs[0][-1]


@flops("MatrixTriangularSolve", matrix=True)
def triangular_solve(c: CostContext) -> int:
    """n**2 per right-hand side (Golub and Van Loan, section 3.1)."""
    return c.inputs[0][-1] * c.elements_out()


@flops("MatrixSolve", matrix=True)
def matrix_solve(c: CostContext) -> int:
    """2/3 * n**3 for the factors and 2 * n**2 per right-hand side (Golub and Van Loan, section 3.2)."""
    n = c.inputs[0][-1]
    return 2 * c.elements_in() * n // 3 + 2 * n * c.elements_out()


def _fourier(c: CostContext, axes: int, elements: int) -> int:
    """5 * n * log2(n), the customary count of a radix-2 transform; log2 is rounded up."""
    points = prod(c.outputs[0][-axes:]) if c.outputs else 1
    return 5 * elements * max(1, (points - 1).bit_length())


@flops("FFT", "IFFT", "RFFT", "IRFFT")
def fft(c: CostContext) -> int:
    """A transform of the last axis."""
    return _fourier(c, 1, max(c.elements_in(), c.elements_out()))


@flops("FFT2D", "IFFT2D", "RFFT2D", "IRFFT2D")
def fft2d(c: CostContext) -> int:
    """A transform of the last two axes."""
    return _fourier(c, 2, max(c.elements_in(), c.elements_out()))
