"""Slopes of products, reductions and running reductions are what their gradients say."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from tests.graph.gradients.numeric import check, complex_normal, distinct, normal

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


@pytest.mark.parametrize(("a", "b"), FOUR)
async def test_sparse_products(a: bool, b: bool) -> None:
    """A sparse tensor's values, and mostly zero matrices."""
    indices = np.array([[0, 1], [1, 0], [1, 2]])
    dense = turned(complex_normal(2 if a else 3, 4), b)

    def build(g: GraphBuilder, values: Tensor, y: Tensor) -> Operation:
        shape = g.constant(np.array([2, 3]))
        attrs = {"adjoint_a": a, "adjoint_b": b}
        return g.op("SparseTensorDenseMatMul", g.constant(indices), values, shape, y, attrs=attrs)

    await check(build, complex_normal(3), dense)
    await check(
        lambda g, x, y: g.op("SparseMatMul", x, y, transpose_a=a, transpose_b=b),
        turned(normal(2, 3), a).astype(np.float32),
        turned(normal(3, 4), b).astype(np.float32),
        step=1e-2,
        rtol=1e-3,
        atol=1e-3,
    )


REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"]
AXES: list[list[int] | int] = [[], 0, [1], [-1, 0], [0, 1, 2], [0, 2]]


@pytest.mark.parametrize("keep_dims", BOTH)
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
async def test_reductions(op: str, axes: list[int] | int, keep_dims: bool) -> None:
    """Over any axes, known before the run or not."""
    x = distinct(2, 3, 4)

    def build(b: GraphBuilder, x: Tensor) -> Operation:
        return b.op(op, x, b.constant(np.array(axes, np.int32)), keep_dims=keep_dims)

    await check(build, x, twice=op in ("Prod", "EuclideanNorm"), rtol=1e-4, atol=1e-5)
    await check(build, x, open_shapes=True)


async def test_axes_may_be_computed() -> None:
    """Axes that are fed flow back as well, and product and extremum find them."""

    def build(b: GraphBuilder, x: Tensor) -> list[Operation]:
        axes = b.op("Range", b.constant(0), b.op("Rank", x), b.constant(2))
        return [b.op(op, x, axes) for op in REDUCTIONS]

    await check(build, distinct(2, 3, 4), rtol=1e-4)
    await check(build, distinct(2, 3, 4), rtol=1e-4, open_shapes=True)


async def test_products_with_zeros() -> None:
    """No division: zeros are as good as any number."""
    x = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
    await check(lambda b, x: b.op("Prod", x, b.constant(1)), x, twice=False)
    await check(lambda b, x: b.op("Prod", x, b.constant([0, 1])), x)


async def test_complex_reductions() -> None:
    """Sums, means and products of complex numbers."""
    for op in ("Sum", "Mean", "Prod"):
        await check(lambda b, x, op=op: b.op(op, x, b.constant([0])), complex_normal(2, 3))


async def test_l2_loss() -> None:
    """Half the sum of squares."""
    await check(lambda b, x: b.op("L2Loss", x), normal(2, 3), twice=True)


RUNNING = [(op, *how) for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp") for how in FOUR]


@pytest.mark.parametrize(
    ("op", "exclusive", "reverse"),
    [case for case in RUNNING if case[:2] != ("CumulativeLogsumexp", True)],  # of nothing it is -inf
)
async def test_running_reductions(op: str, exclusive: bool, reverse: bool) -> None:
    """From either end, with or without the element itself."""
    await check(
        lambda b, x: b.op(op, x, b.constant(-1), exclusive=exclusive, reverse=reverse),
        normal(2, 4) + 2,
        twice=op == "Cumprod",
        rtol=1e-4,
    )
