"""Slopes of solvers, factorisations and transforms are what their gradients say."""

from __future__ import annotations

import numpy as np
import pytest

from partita.errors import UnimplementedError
from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import Array
from tests.graph.gradients.numeric import check, complex_normal, example, normal

BOTH = [False, True]
FOUR = [(a, b) for a in BOTH for b in BOTH]


def regular(*shape: int, complex_: bool = False) -> Array:
    """Square matrices far from singular ones."""
    matrices = complex_normal(*shape) if complex_ else normal(*shape)
    return np.asarray(matrices + 3 * np.eye(shape[-1]))


def positive(x: Tensor, b: GraphBuilder) -> Tensor:
    """A positive definite matrix made of any: whatever x, it is symmetric."""
    product = b.op("BatchMatMulV2", x, x, adj_y=True)
    return product + b.constant(np.eye(3) * 2, "complex128" if x.dtype.name.startswith("COMPLEX") else "float64")


@pytest.mark.parametrize("complex_", BOTH)
@pytest.mark.parametrize("adjoint", BOTH)
async def test_inverses_and_solutions(adjoint: bool, complex_: bool) -> None:
    """Of a matrix or of its adjoint."""
    a, rhs = regular(2, 3, 3, complex_=complex_), (complex_normal if complex_ else normal)(2, 3, 2)
    await check(lambda b, x: b.op("MatrixInverse", x, adjoint=adjoint), a, twice=True, rtol=1e-4)
    await check(lambda b, x, y: b.op("MatrixSolve", x, y, adjoint=adjoint), a, rhs, rtol=1e-4)


@pytest.mark.parametrize(("lower", "adjoint"), FOUR)
async def test_triangular_solutions(lower: bool, adjoint: bool) -> None:
    """In the triangle that is read; batches stretch."""

    def build(b: GraphBuilder, x: Tensor, y: Tensor) -> Operation:
        return b.op("MatrixTriangularSolve", x, y, lower=lower, adjoint=adjoint)

    await check(build, regular(3, 3, complex_=True), complex_normal(3, 2), rtol=1e-4)
    await check(build, regular(3, 3), normal(2, 3, 2), rtol=1e-4, open_shapes=True)


@pytest.mark.parametrize("open_shapes", BOTH)
@pytest.mark.parametrize(("lower", "adjoint"), FOUR)
async def test_banded_solutions(lower: bool, adjoint: bool, open_shapes: bool) -> None:
    """In the bands."""
    bands = normal(2, 4) * 0.3 + np.array([[3.0], [0.0]] if lower else [[0.0], [3.0]])
    bands[1 if lower else 0, 0 if lower else -1] = 0 if lower else bands[0, -1]

    def build(b: GraphBuilder, x: Tensor, y: Tensor) -> Operation:
        return b.op("BandedTriangularSolve", x, y, lower=lower, adjoint=adjoint)

    await check(build, bands, normal(4, 2), rtol=1e-4, open_shapes=open_shapes)


@pytest.mark.parametrize("complex_", BOTH)
async def test_determinants(complex_: bool) -> None:
    """And their logarithms."""
    a = regular(2, 3, 3, complex_=complex_)
    await check(lambda b, x: b.op("MatrixDeterminant", x), a, rtol=1e-4)
    if not complex_:
        await check(lambda b, x: b.op("LogMatrixDeterminant", x)[1], a, rtol=1e-4)


@pytest.mark.parametrize("complex_", BOTH)
async def test_cholesky(complex_: bool) -> None:
    """The gradient is that of a symmetric matrix."""
    x = (complex_normal if complex_ else normal)(2, 3, 3)
    await check(lambda b, x: b.op("Cholesky", positive(x, b)), x, rtol=1e-4)


@pytest.mark.parametrize("compute_v", BOTH)
async def test_eigenvalues_of_symmetric_matrices(compute_v: bool) -> None:
    """With and without vectors."""

    def build(b: GraphBuilder, x: Tensor) -> list[Tensor]:
        outputs = b.op("SelfAdjointEigV2", positive(x, b), compute_v=compute_v)
        return [outputs[0], b.op("Square", outputs[1])[0]] if compute_v else [outputs[0]]

    await check(build, normal(2, 3, 3), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("compute_v", BOTH)
async def test_eigenvalues(compute_v: bool) -> None:
    """Of any matrix; of the vectors, which are scaled to length 1, what no phase changes."""

    def build(b: GraphBuilder, x: Tensor) -> list[Tensor]:
        outputs = b.op("Eig", x, compute_v=compute_v, Tout="complex128")
        return [outputs[0], b.op("ComplexAbs", outputs[1], Tout="float64")[0]] if compute_v else [outputs[0]]

    await check(build, regular(3, 3, complex_=True) + np.diag([0.0, 3.0, 6.0]), rtol=1e-3, atol=1e-5)
    await check(build, regular(3, 3) + np.diag([0.0, 3.0, 6.0]), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
async def test_singular_values(shape: tuple[int, int]) -> None:
    """Values, and what the signs of vectors do not change."""

    def build(b: GraphBuilder, x: Tensor) -> list[Tensor]:
        s, u, v = b.op("Svd", x, compute_uv=True)
        return [s, u * u, v * v]

    await check(build, normal(*shape), rtol=1e-3, atol=1e-5)
    await check(lambda b, x: b.op("Svd", x, compute_uv=False)[0], normal(2, *shape), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5)])
async def test_qr(shape: tuple[int, int]) -> None:
    """Square, tall and wide."""
    await check(lambda b, x: b.op("Qr", x), normal(2, *shape), rtol=1e-3, atol=1e-5)


async def test_factors_without_gradients_say_so() -> None:
    """Full factors of matrices that are not square, and sizes that are not known."""
    for op, attrs in (("Qr", {}), ("Svd", {"compute_uv": True})):
        with pytest.raises(UnimplementedError):
            await check(lambda b, x, op=op, attrs=attrs: b.op(op, x, full_matrices=True, attrs=attrs), normal(4, 3))
    with pytest.raises(UnimplementedError, match="known"):
        await check(lambda b, x: b.op("Qr", x), normal(4, 3), open_shapes=True)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
async def test_least_squares(shape: tuple[int, int], penalty: float) -> None:
    """Tall and wide, with and without a penalty."""
    await check(
        lambda b, x, y: b.op("MatrixSolveLs", x, y, b.constant(penalty, "float64"), fast=True),
        normal(2, *shape),
        normal(2, shape[0], 2),
        rtol=1e-3,
        atol=1e-5,
    )


async def test_square_root() -> None:
    """Of a batch of positive matrices."""
    await check(lambda b, x: b.op("MatrixSquareRoot", positive(x, b)), normal(2, 3, 3), rtol=1e-3, atol=1e-5)


async def test_three_diagonals() -> None:
    """Products and equations."""
    await check(
        lambda b, *args: b.op("TridiagonalMatMul", *args), *(normal(2, 1, 4, seed=i) for i in range(3)), normal(2, 4, 3)
    )
    diagonals = normal(2, 3, 4) * 0.3 + np.array([[0.0], [3.0], [0.0]])
    await check(lambda b, d, y: b.op("TridiagonalSolve", d, y), diagonals, normal(2, 4, 2))


TRANSFORMS = {
    **{
        f"{op}{dims}": example(lambda b, x, op=op, dims=dims: b.op(f"{op}{dims}", x), complex_normal(2, 2, 3, 4))
        for op in ("FFT", "IFFT")
        for dims in ("", "2D", "3D")
    },
    **{
        f"RFFT{dims} to {last}": example(
            lambda b, x, dims=dims, lengths=lengths, last=last: b.op(
                f"RFFT{dims}", x, b.constant([*lengths, last]), Tcomplex="complex128"
            ),
            normal(2, 3, 5),
        )
        for dims, lengths in (("", []), ("2D", [3]), ("3D", [2, 3]))
        for last in (4, 5)
    },
    **{
        f"IRFFT{dims} to {last}": example(
            lambda b, x, dims=dims, lengths=lengths, last=last: b.op(
                f"IRFFT{dims}", x, b.constant([*lengths, last]), Treal="float64"
            ),
            complex_normal(2, 3, 4),
        )
        for dims, lengths in (("", []), ("2D", [3]), ("3D", [2, 3]))
        for last in (4, 6, 7)
    },
}


@pytest.mark.parametrize("name", TRANSFORMS)
async def test_fourier_transforms(name: str) -> None:
    """Whole and half ones, of any length."""
    await TRANSFORMS[name].check()


async def test_fourier_transforms_of_open_shapes() -> None:
    """Shapes that are not known before the run."""
    for name in ("FFT2D", "RFFT to 5", "IRFFT2D to 7"):
        await TRANSFORMS[name].check(open_shapes=True)
