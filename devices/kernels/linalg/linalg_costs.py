"""Costs of matrix products, tensor contractions, factorisations and Fourier transforms.

A product of m x k and k x n counts 2*m*k*n, one multiplication and one addition per term (Golub and Van Loan, Matrix
Computations, section 1.1).
"""

from __future__ import annotations

from math import prod

from ..op_cost import CostContext, flops, products
from ..op_forms import Product

_LAYOUTS = {(False, False): "NN", (False, True): "TN", (True, False): "NT"}  # of (first, second factor transposed)


@flops("MatMul", "SparseMatMul", "_FusedMatMul", matrix="product")
def matmul(c: CostContext) -> int:
    """2*m*k*n; which axis is k depends on the transposition of the factor."""
    a = c.inputs[0]
    k = a[0] if c.attrs.get("transpose_a") else a[1]
    return 2 * k * c.elements_out()


@flops("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", matrix="product")
def batch_matmul(c: CostContext) -> int:
    """2*m*k*n for every matrix of the (broadcast) batch; k is the second to last axis of x if that is adjoint."""
    x = c.inputs[0]
    return 2 * x[-2 if c.attrs.get("adj_x") else -1] * c.elements_out()


@products("MatMul", "SparseMatMul", "_FusedMatMul")
def matmul_product(c: CostContext) -> Product:
    """m and n are the sizes of the output."""
    turned = bool(c.attrs.get("transpose_a")), bool(c.attrs.get("transpose_b"))
    m, n = c.outputs[0]
    return Product(m, n, c.inputs[0][0 if turned[0] else 1], layout=_LAYOUTS.get(turned, ""))


@products("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul_product(c: CostContext) -> Product:
    """m and n are the last two sizes of the output, the others are the batch."""
    turned = bool(c.attrs.get("adj_x")), bool(c.attrs.get("adj_y"))
    *batch, m, n = c.outputs[0]
    return Product(m, n, c.inputs[0][-2 if turned[0] else -1], prod(batch), _LAYOUTS.get(turned, ""))


@products("Einsum", "XlaEinsum")
def einsum_product(c: CostContext) -> Product | None:
    """Labels of both factors that are summed over are k, the others the batch; None without both sums and rows."""
    if len(c.inputs) != 2:
        return None
    sizes, (a, b) = _label_sizes(c), (set(term) for term in _terms(c))
    kept = _output_labels(c)
    m, n, k, batch = (
        prod(sizes[label] for label in labels) for labels in (a - b, b - a, (a & b) - kept, (a & b) & kept)
    )
    return Product(m, n, k, batch) if k > 1 and m * n > 1 else None


@flops("Einsum", "XlaEinsum", matrix="product")
def einsum(c: CostContext) -> int:
    """One multiplication per factor after the first and one addition for every point of the space of all labels."""
    sizes = _label_sizes(c)
    return len(c.inputs) * prod(sizes.values())


def _sides(c: CostContext) -> tuple[str, str]:
    """The inputs' and the output's side of the equation."""
    left, _, right = c.attrs["equation"].decode().replace(" ", "").partition("->")
    return left, right


def _terms(c: CostContext) -> list[list[str]]:
    """The labels of the axes of each input; the axes of an ellipsis are labels counted from the right."""
    terms = []
    for term, dims in zip(_sides(c)[0].split(","), c.inputs, strict=True):
        before, dots, after = term.partition("...")
        hidden = len(dims) - len(before) - len(after)
        terms.append([*before, *(f"...{hidden - i}" for i in range(hidden) if dots), *after])
    return terms


def _output_labels(c: CostContext) -> set[str]:
    """The labels of the output, with all those of its ellipsis."""
    right = _sides(c)[1]
    hidden = {label for term in _terms(c) for label in term if len(label) > 1}
    return set(right.replace("...", "")) | (hidden if "..." in right else set())


def _label_sizes(c: CostContext) -> dict[str, int]:
    """The size of each label."""
    sizes: dict[str, int] = {}
    for labels, dims in zip(_terms(c), c.inputs, strict=True):
        for label, size in zip(labels, dims, strict=True):
            sizes[label] = max(sizes.get(label, 1), size)
    return sizes


@flops("Cholesky", "BatchCholesky", matrix="factorisation")
def cholesky(c: CostContext) -> int:
    """n**3 / 3 per matrix (Golub and Van Loan, section 4.2)."""
    return c.elements_in() * c.inputs[0][-1] // 3


@flops("MatrixInverse", "BatchMatrixInverse", matrix="factorisation")
def matrix_inverse(c: CostContext) -> int:
    """2 * n**3 per matrix: LU factors and n solves (Golub and Van Loan, section 3.2)."""
    return 2 * c.elements_in() * c.inputs[0][-1]


@flops("MatrixTriangularSolve", "BatchMatrixTriangularSolve", matrix="factorisation")
def triangular_solve(c: CostContext) -> int:
    """n**2 per right-hand side (Golub and Van Loan, section 3.1)."""
    return c.inputs[0][-1] * c.elements_out()


@flops("MatrixSolve", "BatchMatrixSolve", matrix="factorisation")
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


@flops("FFT3D", "IFFT3D", "RFFT3D", "IRFFT3D")
def fft3d(c: CostContext) -> int:
    """A transform of the last three axes."""
    return _fourier(c, 3, max(c.elements_in(), c.elements_out()))


# Operations per n**3 of a square matrix of n rows, in thirds (Golub and Van Loan; Higham, Functions of Matrices).
_CUBES = {
    "Lu": 2,
    "MatrixDeterminant": 2,
    "BatchMatrixDeterminant": 2,
    "LogMatrixDeterminant": 2,
    "CholeskyGrad": 4,
    "BatchCholeskyGrad": 4,
    "SelfAdjointEig": 27,
    "SelfAdjointEigV2": 27,
    "BatchSelfAdjointEig": 27,
    "BatchSelfAdjointEigV2": 27,
    "Eig": 75,
    "MatrixExponential": 44,
    "MatrixLogarithm": 76,
    "MatrixSquareRoot": 76,
}


@flops(*_CUBES)
def cubes(c: CostContext) -> int:
    """So many thirds of n**3 per matrix."""
    return _CUBES[c.op] * c.elements_in() * c.inputs[0][-1] // 3


@flops("Qr")
def qr(c: CostContext) -> int:
    """4 * m * n**2, for both factors (Golub and Van Loan, section 5.2), with n the smaller side."""
    return 4 * c.elements_in() * min(c.inputs[0][-2:])


@flops("Svd", "BatchSvd")
def svd(c: CostContext) -> int:
    """4 * m**2 * n + 8 * m * n**2 + 9 * n**3 for both bases, n the smaller side (Golub and Van Loan, figure 8.6.1)."""
    n, m = sorted(c.inputs[0][-2:])
    return c.elements_in() * (4 * m + 8 * n) + 9 * prod(c.inputs[0][:-2]) * n**3


@flops("MatrixSolveLs", "BatchMatrixSolveLs")
def least_squares(c: CostContext) -> int:
    """The normal equations: m * n**2 products, n**3 / 3 for the factor, 2 * (m + n) * n per right-hand side."""
    n, m = sorted(c.inputs[0][-2:])
    return c.elements_in() * n + prod(c.inputs[0][:-2]) * n**3 // 3 + 2 * (m + n) * c.elements_out()


@flops("BandedTriangularSolve")
def banded_solve(c: CostContext) -> int:
    """A product and a difference per element and band."""
    return 2 * c.inputs[0][-2] * c.elements_out()


@flops("TridiagonalMatMul")
def tridiagonal_product(c: CostContext) -> int:
    """Three products and two sums per element."""
    return 5 * c.elements_out()


@flops("TridiagonalSolve")
def tridiagonal_solve(c: CostContext) -> int:
    """Thomas' algorithm: three operations for each row's factors, five per element."""
    return c.elements_in() + 5 * c.elements_out()


@flops("NearestNeighbors")
def nearest_neighbors(c: CostContext) -> int:
    """A squared difference per coordinate of each point and centre, and a heap of k."""
    points, size = c.inputs[0]
    centers = c.inputs[1][0]
    return points * centers * (3 * size + max(c.outputs[0][-1], 1).bit_length())
