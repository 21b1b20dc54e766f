"""Slopes of products of matrices and of Einsum are what their gradients say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from tests.graph.gradients.numeric import check, complex_normal, normal

BOTH = [False, True]
FOUR = list(product(BOTH, BOTH))


def turned(array: np.ndarray, swap: bool) -> np.ndarray:
    """The last two axes swapped, or not."""
    return np.swapaxes(array, -1, -2) if swap else array


@pytest.mark.parametrize(("a", "b"), FOUR)
async def test_matmul(a: bool, b: bool) -> None:
    """Real and complex, either factor transposed."""

    def build(g: GraphBuilder, x: Tensor, y: Tensor) -> Operation:
        return g.op("MatMul", x, y, transpose_a=a, transpose_b=b)

    await check(build, turned(normal(2, 3), a), turned(normal(3, 4), b), twice=True)
    await check(build, turned(complex_normal(2, 3), a), turned(complex_normal(3, 4), b))


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"])
@pytest.mark.parametrize(("a", "b"), FOUR)
async def test_batch_matmul(op: str, a: bool, b: bool) -> None:
    """Either factor adjoint; the later versions stretch batches."""
    types = {"Tout": "complex128"} if op == "BatchMatMulV3" else {}

    def build(g: GraphBuilder, x: Tensor, y: Tensor) -> Operation:
        return g.op(op, x, y, adj_x=a, adj_y=b, attrs=types)

    await check(build, turned(complex_normal(5, 2, 3), a), turned(complex_normal(5, 3, 4), b))
    if op != "BatchMatMul":
        xs = turned(complex_normal(1, 2, 3), a), turned(complex_normal(2, 5, 3, 4), b)
        await check(build, *xs)
        await check(build, *xs, open_shapes=True)


@pytest.mark.parametrize(("a", "b"), FOUR)
async def test_products_of_mostly_zero_matrices(a: bool, b: bool) -> None:
    """In float32, either factor transposed."""
    await check(
        lambda g, x, y: g.op("SparseMatMul", x, y, transpose_a=a, transpose_b=b),
        turned(normal(2, 3), a).astype(np.float32),
        turned(normal(3, 4), b).astype(np.float32),
        step=1e-2,
        rtol=1e-3,
        atol=1e-3,
    )


EQUATIONS = {
    "ab,bc->ac": ((2, 3), (3, 4)),
    "ab,bc->ca": ((2, 3), (3, 4)),
    "abc->b": ((2, 3, 4),),
    "ab->ba": ((2, 3),),
    "aa->a": ((3, 3),),
    "aab->ab": ((3, 3, 2),),
    "a,b->ab": ((2,), (3,)),
    "ab,cd->a": ((2, 3), (4, 2)),
    "ab,ab->": ((2, 3), (2, 3)),
    "...ij,...jk->...ik": ((5, 2, 3), (5, 3, 4)),
    "i...j,jk...->...ik": ((2, 1, 3), (3, 4, 5)),
    "...ij,jk->ik...": ((5, 2, 3), (3, 4)),
    "aab,bc->ac": ((3, 3, 2), (2, 4)),
    "...->...": ((2, 3),),
    "...i->...": ((2, 3),),
}


@pytest.mark.parametrize("open_shapes", BOTH)
@pytest.mark.parametrize("equation", EQUATIONS)
async def test_einsum(equation: str, open_shapes: bool) -> None:
    """Products, sums, diagonals, stretched batches."""
    xs = [complex_normal(*shape) for shape in EQUATIONS[equation]]
    await check(lambda b, *args: b.op("Einsum", list(args), equation=equation), *xs, open_shapes=open_shapes)
