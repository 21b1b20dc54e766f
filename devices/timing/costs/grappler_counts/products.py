"""Products of matrices: a multiplication and an addition for each triple of row, column and step.

Einsum counts as the batch of products that it is, if it is plainly one.
"""

from __future__ import annotations

from math import prod

from ....kernels.op_cost import CostContext
from .count import CountRule, GrapplerCount, counted, only_memory, text


def _m_n_k(a: tuple[int, ...], b: tuple[int, ...], transpose_a: object, transpose_b: object) -> int:
    rows, steps = (a[-1], a[-2]) if transpose_a else (a[-2], a[-1])
    return rows * steps * (b[-2] if transpose_b else b[-1])


def _product(c: CostContext) -> GrapplerCount:
    a, b = c.inputs[:2]
    return counted(2 * _m_n_k(a, b, c.attrs.get("transpose_a"), c.attrs.get("transpose_b")), c)


def _batch_of_products(c: CostContext) -> GrapplerCount:
    """The axes before the last two are broadcast."""
    a, b = c.inputs[:2]
    rank = max(len(a), len(b))
    batches = zip(*((1,) * (rank - len(dims)) + dims[:-2] for dims in (a, b)), strict=True)
    return counted(2 * prod(map(max, batches)) * _m_n_k(a, b, c.attrs.get("adj_x"), c.attrs.get("adj_y")), c)


def _sparse_times_dense(c: CostContext) -> GrapplerCount:
    """A multiply-add per entry of the sparse matrix and column of the dense one, which is read for each of them.

    Inputs: indices, values, shape, dense matrix; a column is axis 1 of the last, even where `adjoint_b` is set.
    """
    entries, columns = c.inputs[1][0], c.inputs[3][1]
    dense_bytes = c.bytes_in(3) // max(1, c.elements_in(3)) * entries * columns
    moved = sum(map(c.bytes_in, range(3))) + dense_bytes + sum(map(c.bytes_out, range(len(c.outputs))))
    return GrapplerCount(2 * entries * columns, moved)


def _einsum(c: CostContext) -> GrapplerCount:
    """A multiply-add for each point of the space that the labels span; no operations where it is no batch of products.

    It is one if two operands have two axes or more, no label stands twice in an operand or in the output, none is
    summed up that only one operand has, and the equation is letters, comma and arrow alone.
    """
    operands, arrow, output = text(c, "equation").partition("->")
    labels = operands.split(",")
    if not arrow or len(labels) != 2 or len(c.inputs) != 2 or not _is_batch_of_products(labels, output):
        return only_memory(c)
    sizes = dict(zip(labels[1], c.inputs[1], strict=True)) | dict(zip(labels[0], c.inputs[0], strict=True))
    return counted(2 * prod(sizes.values()), c)


def _is_batch_of_products(labels: list[str], output: str) -> bool:
    if not all(side.isalpha() or side == output == "" for side in (*labels, output)):
        return False
    if any(len(set(side)) < len(side) for side in (*labels, output)) or min(map(len, labels)) < 2:
        return False
    return set(labels[0]) ^ set(labels[1]) <= set(output)


RULES: dict[str, CountRule] = {
    "MatMul": _product,
    "SparseMatMul": _product,
    "QuantizedMatMul": _product,
    "BatchMatMul": _batch_of_products,
    "BatchMatMulV2": _batch_of_products,
    "SparseTensorDenseMatMul": _sparse_times_dense,
    "Einsum": _einsum,
    "XlaEinsum": _einsum,
}
