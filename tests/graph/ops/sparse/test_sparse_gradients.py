"""Slopes of ops on sparse and ragged tensors are what their gradients say."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.builder import GraphBuilder
from partita.graph.builder.handles import Operation, Tensor
from partita.graph.dtypes import DataType
from tests.graph.gradients.numeric import Example, between, check, complex_normal, example, known, normal

BOTH = [False, True]


@pytest.mark.parametrize("a", BOTH)
@pytest.mark.parametrize("b", BOTH)
async def test_sparse_products(a: bool, b: bool) -> None:
    """Of values of a sparse tensor and a dense one, either adjoint."""
    indices = np.array([[0, 1], [1, 0], [1, 2]])
    dense = complex_normal(4, 2 if a else 3) if b else complex_normal(2 if a else 3, 4)

    def build(g: GraphBuilder, values: Tensor, y: Tensor) -> Operation:
        shape = g.constant(np.array([2, 3]))
        attrs = {"adjoint_a": a, "adjoint_b": b}
        return g.op("SparseTensorDenseMatMul", g.constant(indices), values, shape, y, attrs=attrs)

    await check(build, complex_normal(3), dense)


@pytest.mark.parametrize("a", ["", "transpose_a", "adjoint_a"])
@pytest.mark.parametrize("b", ["", "transpose_b", "adjoint_b"])
@pytest.mark.parametrize("batch", [(), (2,)])
async def test_products_of_matrices_by_rows(a: str, b: str, batch: tuple[int, ...]) -> None:
    """Of the elements of a sparse matrix with a dense one, either transposed or adjoint; from dense and to dense."""
    indices = np.array([[0, 1], [1, 0], [1, 2]])
    if batch:
        indices = np.array([[0, 0, 1], [1, 1, 0], [1, 1, 2]])
    dense = complex_normal(*batch, 4, 2 if a else 3) if b else complex_normal(*batch, 2 if a else 3, 4)

    def build(g: GraphBuilder, x: Tensor, y: Tensor) -> list[Operation]:
        matrix = g.op("DenseToCSRSparseMatrix", x, g.constant(indices))
        turned = g.op("SparseMatrixTranspose", matrix, attrs={"conjugate": True, "type": DataType.COMPLEX128})
        product = g.op("SparseMatrixMatMul", matrix, y, attrs={name: True for name in (a, b) if name})
        return [product, g.op("CSRSparseMatrixToDense", turned, attrs={"type": DataType.COMPLEX128})]

    await check(build, complex_normal(*batch, 2, 3), dense)


async def test_values_of_matrices_by_rows() -> None:
    """They come from a sparse tensor and become one again."""

    def build(g: GraphBuilder, values: Tensor) -> Tensor:
        indices, shape = g.constant(np.array([[0, 1], [1, 0], [1, 2]])), g.constant(np.array([2, 3]))
        matrix = g.op("SparseTensorToCSRSparseMatrix", indices, values, shape)
        return g.op("CSRSparseMatrixToSparseTensor", matrix, attrs={"type": DataType.DOUBLE})[1]

    await check(build, normal(3))


INDICES = np.array([[1, 0], [0, 1], [0, 2]])


ORDERED = np.array([[0, 1], [0, 2], [1, 0]])


SIZES = np.array([2, 3])


SPARSE = {
    "reorder": example(lambda b, v: b.op("SparseReorder", b.constant(INDICES), v, b.constant(SIZES))[1], normal(3)),
    "to dense": example(
        lambda b, v, d: b.op("SparseToDense", b.constant(ORDERED), b.constant(SIZES), v, d), normal(3), normal()
    ),
    "to dense of one value": example(
        lambda b, v, d: b.op("SparseToDense", b.constant(ORDERED), b.constant(SIZES), v, d), normal(), normal(seed=1)
    ),
    "reduce": example(
        lambda b, v: b.op("SparseReduceSum", b.constant(ORDERED), v, b.constant(SIZES), b.constant([-1])), normal(3)
    ),
    "reduce, kept": example(
        lambda b, v: b.op(
            "SparseReduceSum", b.constant(ORDERED), v, b.constant(SIZES), b.constant([0]), keep_dims=True
        ),
        normal(3),
    ),
    "fill": example(
        lambda b, v, d: b.op("SparseFillEmptyRows", b.constant(ORDERED), v, b.constant(np.array([4, 3])), d)[1],
        normal(3),
        normal(),
    ),
    "ragged to sparse": example(
        lambda b, v: b.op("RaggedTensorToSparse", [b.constant(np.array([0, 2, 2, 3]))], v), normal(3, 2)
    ),
    **{
        f"ragged variants {batched}": example(
            lambda b, v, batched=batched: b.op(
                "RaggedTensorFromVariant",
                b.op("RaggedTensorToVariant", [b.constant(np.array([0, 2, 2, 3]))], v, batched_input=batched),
                input_ragged_rank=0 if batched else 1,
                output_ragged_rank=1,
                Tvalues=DataType.DOUBLE,
            ),
            normal(3, 2),
        )
        for batched in (True, False)
    },
    "ragged gather": example(
        lambda b, v: b.op(
            "RaggedGather",
            [b.constant(np.array([0, 2, 2, 3]))],
            v,
            b.constant(np.array([0, 2, 0])),
            OUTPUT_RAGGED_RANK=1,
        ),
        normal(3, 2),
    ),
    "fill empty ragged rows": example(
        lambda b, v, d: b.op("RaggedFillEmptyRows", b.constant(np.array([0, 0, 2])), v, b.constant(np.array(4)), d),
        normal(3),
        normal(),
    ),
    "plus dense": example(
        lambda b, v, d: b.op("SparseTensorDenseAdd", b.constant(ORDERED), v, b.constant(SIZES), d),
        normal(3),
        normal(2, 3),
    ),
    "softmax": example(lambda b, v: b.op("SparseSoftmax", b.constant(ORDERED), v, b.constant(SIZES)), normal(3)),
    **{
        f"{op} {dense.shape}": example(
            lambda b, v, d, op=op: b.op(op, b.constant(ORDERED), v, b.constant(SIZES), d), normal(3), dense
        )
        for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv")
        for dense in (between(1, 2, 2, 3), between(1, 2, 3), between(1, 2, 2, 1))
    },
    "add": example(
        lambda b, v, w: b.op(
            "SparseAdd",
            b.constant(ORDERED),
            v,
            b.constant(SIZES),
            b.constant(np.array([[0, 0], [0, 2]])),
            w,
            b.constant(SIZES),
            b.constant(0.0, "float64"),
        )[1],
        normal(3),
        normal(2),
    ),
    "slice": example(
        lambda b, v: b.op(
            "SparseSlice",
            b.constant(ORDERED),
            v,
            b.constant(SIZES),
            b.constant(np.array([0, 1])),
            b.constant(np.array([2, 1])),
        )[1],
        normal(3),
    ),
    "ragged": example(
        lambda b, v, d: b.op(
            "RaggedTensorToTensor",
            b.constant(np.array([3, 3])),
            v,
            d,
            [b.constant(np.array([0, 2, 2, 6]))],
            row_partition_types=["ROW_SPLITS"],
        ),
        normal(6),
        normal(),
    ),
    "ragged rows": example(
        lambda b, v, d: b.op(
            "RaggedTensorToTensor",
            b.constant(np.array([-1, -1, 2])),
            v,
            d,
            [b.constant(np.array([0, 2, 3]))],
            row_partition_types=["ROW_SPLITS"],
        ),
        normal(3, 2),
        normal(2),
    ),
}


def picked(op: str) -> Example:
    """An op on segments of rows that are picked by index."""
    counts = [4] if op.endswith("WithNumSegments") else []
    return example(
        lambda b, x: b.op(op, x, known(b, [0, 2, 2, 1]), known(b, [0, 0, 1, 3]), *(known(b, n) for n in counts)),
        normal(3, 2),
    )


PICKED = {
    op: picked(op)
    for kind in ("Sum", "Mean", "SqrtN")
    for op in (f"SparseSegment{kind}", f"SparseSegment{kind}WithNumSegments")
}


@pytest.mark.parametrize("open_shapes", BOTH)
@pytest.mark.parametrize("name", SPARSE | PICKED)
async def test_values_flow_back_to_where_they_came_from(name: str, open_shapes: bool) -> None:
    """With known shapes and with shapes that are unknown before the run."""
    await (SPARSE | PICKED)[name].check(open_shapes=open_shapes)
