"""Grouped products: the rows of each group, which stand together, times a matrix of the group.

    rows_per_group [2 0 1]      x0 x1 | | x2        x0 W0, x1 W0, x2 W2

This is what the experts of one device compute, once the tokens are sorted by expert. Groups may be empty.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..checks import require
from ..dense import of_dense
from ..half_types import in_float32
from ..linalg.products import matrix_product
from ..output_size import output_shape
from ..registry import Construction, Kernel, kernel


@kernel("Partita>GroupedMatMul")
def grouped_matmul(node: Construction) -> Kernel:
    """x W of each group; W is transposed first with `transpose_b`."""
    turned = bool(node.attrs["transpose_b"])

    def multiply(x: Array, weights: Array, rows_per_group: Array) -> Array:
        _check_ranks(("x", x, 2), ("weights", weights, 3), ("rows_per_group", rows_per_group, 1))
        matrices = weights.swapaxes(1, 2) if turned else weights
        if x.shape[1] != matrices.shape[1]:
            raise InvalidArgumentError(
                f"x has rows of {x.shape[1]} elements, but weights {shape_text(weights.shape)} multiply rows of "
                f"{matrices.shape[1]}; see attr transpose_b"
            )
        if len(weights) != len(rows_per_group):
            raise InvalidArgumentError(
                f"weights have {len(weights)} groups, but rows_per_group {len(rows_per_group)}; give a number for each"
            )
        product = np.empty(output_shape((len(x), matrices.shape[2]), x.dtype), x.dtype)
        for group, rows in _groups(rows_per_group, len(x)):
            product[rows] = matrix_product(x[rows], matrices[group])
        return product

    return of_dense(in_float32(multiply, node.output_types[0]))


@kernel("Partita>GroupedMatMulGrad")
def grouped_matmul_grad(node: Construction) -> Kernel:
    """x^T d_product of each group, its transpose with `transpose_b`; zeros for a group without rows."""
    turned = bool(node.attrs["transpose_b"])

    def multiply(x: Array, d_product: Array, rows_per_group: Array) -> Array:
        _check_ranks(("x", x, 2), ("d_product", d_product, 2), ("rows_per_group", rows_per_group, 1))
        if len(x) != len(d_product):
            raise InvalidArgumentError(f"x has {len(x)} rows and d_product {len(d_product)}; they must be equal")
        left, right = (d_product, x) if turned else (x, d_product)
        shape = (len(rows_per_group), left.shape[1], right.shape[1])
        d_weights = np.zeros(output_shape(shape, x.dtype), x.dtype)
        for group, rows in _groups(rows_per_group, len(x)):
            d_weights[group] = matrix_product(left[rows].T, right[rows])
        return d_weights

    return of_dense(in_float32(multiply, node.output_types[0]))


def _check_ranks(*inputs: tuple[str, Array, int]) -> None:
    for name, value, rank in inputs:
        if value.ndim != rank:
            raise InvalidArgumentError(f"{name} has the shape {shape_text(value.shape)}; it must be of rank {rank}")


def _groups(rows_per_group: Array, rows: int) -> Iterator[tuple[int, slice]]:
    """The groups that have rows, and which; InvalidArgumentError for numbers that are negative or do not add up."""
    numbers = rows_per_group.tolist()  # of any size, where the sum of an array wraps around
    require(min(numbers, default=0) >= 0, f"rows_per_group must not be negative, but are {numbers}")
    if sum(numbers) != rows:
        raise InvalidArgumentError(f"rows_per_group {numbers} add up to {sum(numbers)} rows, but x has {rows}")
    end = 0
    for group, count in enumerate(numbers):
        begin, end = end, end + count
        if count:
            yield group, slice(begin, end)
