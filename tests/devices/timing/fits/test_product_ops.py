"""Which matrix product an op is: sizes, batch, layout and bytes."""

from __future__ import annotations

from math import isclose
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.catalog import device_spec
from partita.devices.kernels.op_cost import CostContext, bytes_of, flops_of, product_of
from partita.devices.kernels.op_forms import Product
from partita.devices.timing.costs.source import context
from partita.devices.timing.fits.product_ops import products_in_columns, terms_of
from partita.graph.dtypes import DataType
from partita.graph.ops.properties import properties_of

Dims = tuple[int, ...]
sizes = st.integers(1, 40)
FLOAT = DataType.FLOAT


def use(op: str, inputs: tuple[Dims, ...], output: Dims, dtype: DataType = FLOAT, **attrs: Any) -> CostContext:
    """One use of an op; Any: attr values."""
    return context(properties_of(op, {"T": dtype, **attrs}), inputs, (output,))


def conv(op: str, inputs: tuple[Dims, ...], output: Dims, layout: bytes = b"NHWC") -> CostContext:
    """One use of a convolution or of a gradient of one."""
    return use(op, inputs, output, strides=(1, 1, 1, 1), padding=b"SAME", data_format=layout)


@given(sizes, sizes, sizes, st.booleans(), st.booleans())
def test_matmul(m: int, n: int, k: int, a: bool, b: bool) -> None:
    """m, n, k whatever is transposed; the operations of the op are those of the product."""
    c = use("MatMul", ((k, m) if a else (m, k), (n, k) if b else (k, n)), (m, n), transpose_a=a, transpose_b=b)
    product = product_of(c)
    assert product == Product(m, n, k, layout={(0, 0): "NN", (0, 1): "TN", (1, 0): "NT", (1, 1): ""}[a, b])
    assert flops_of(c) == 2 * m * n * k


def test_batches_multiply() -> None:
    """The leading sizes of the output are the batch, broadcast or not."""
    c = use("BatchMatMulV2", ((2, 1, 3, 4), (5, 6, 4)), (2, 5, 3, 6))
    assert product_of(c) == Product(3, 6, 4, 10, "NN")
    adjoint = use("BatchMatMul", ((7, 4, 3), (7, 6, 4)), (7, 3, 6), adj_x=True, adj_y=True)
    assert product_of(adjoint) == Product(3, 6, 4, 7)


@pytest.mark.parametrize(
    ("equation", "inputs", "output", "product"),
    [
        (b"ij,jk->ik", ((2, 3), (3, 4)), (2, 4), Product(2, 4, 3)),
        (b"bqhd,bkhd->bhqk", ((2, 7, 4, 8), (2, 9, 4, 8)), (2, 4, 7, 9), Product(7, 9, 8, 8)),
        (b"...ij,jk->...ik", ((5, 6, 2, 3), (3, 4)), (5, 6, 2, 4), Product(60, 4, 3)),
        (b"ab,ab->ab", ((3, 4), (3, 4)), (3, 4), None),
        (b"a,b->ab", ((3,), (4,)), (3, 4), None),
        (b"ab->ba", ((3, 4),), (4, 3), None),
    ],
)
def test_einsum(equation: bytes, inputs: tuple[Dims, ...], output: Dims, product: Product | None) -> None:
    """Labels that only one factor has are rows or columns; what is no product has none."""
    c = context(properties_of("Einsum", {"T": FLOAT, "N": len(inputs), "equation": equation}), inputs, (output,))
    assert product_of(c) == product


@pytest.mark.parametrize("layout", [b"NHWC", b"NCHW"])
def test_convolutions(layout: bytes) -> None:
    """Forward and both gradients, whose operations are those of their products."""
    x, w, y = (8, 14, 14, 32), (3, 3, 32, 64), (8, 14, 14, 64)
    if layout == b"NCHW":
        x, y = (8, 32, 14, 14), (8, 64, 14, 14)
    points = 8 * 14 * 14
    uses = [
        (conv("Conv2D", (x, w), y, layout), Product(points, 64, 288, is_implicit=True)),
        (conv("Conv2DBackpropInput", ((4,), w, y), x, layout), Product(points, 32, 576, is_implicit=True)),
        (conv("Conv2DBackpropFilter", (x, (4,), y), w, layout), Product(288, 64, points, is_implicit=True)),
    ]
    for c, product in uses:
        assert product_of(c) == product
        assert flops_of(c) == 2 * product.m * product.n * product.k


def test_strides_and_groups() -> None:
    """A gradient to the input counts what exists; each group is a product of the batch."""
    strided = conv("Conv2DBackpropInput", ((4,), (3, 3, 16, 32), (1, 4, 4, 32)), (1, 8, 8, 16))
    assert product_of(strided) == Product(64, 16, 72, is_implicit=True)
    grouped = conv("Conv2D", ((1, 8, 8, 16), (1, 1, 4, 32)), (1, 8, 8, 32))
    assert product_of(grouped) == Product(64, 8, 4, 4, is_implicit=True)


def test_what_is_no_product() -> None:
    """Other ops, empty tensors and shapes that do not fit have none."""
    assert product_of(use("Neg", ((3, 4),), (3, 4))) is None
    assert product_of(use("MatMul", ((0, 4), (4, 5)), (0, 5))) is None
    assert product_of(use("MatMul", ((4,), (4, 5)), (5,))) is None
    depthwise = conv("DepthwiseConv2dNative", ((1, 8, 8, 4), (3, 3, 4, 1)), (1, 8, 8, 4))
    assert product_of(depthwise) is None


def test_types_scale_rate_and_bytes() -> None:
    """bf16 is what was measured; float32 runs as tf32 with four bytes; a convolution moves its tensors only."""
    h100 = device_spec("H100-SXM")
    plain = use("MatMul", ((64, 128), (128, 256)), (64, 256), DataType.BFLOAT16)
    product = product_of(plain)
    assert product is not None
    assert terms_of(plain, product, h100) == (2.0, 1.0, False)
    single = use("MatMul", ((64, 128), (128, 256)), (64, 256))
    assert terms_of(single, product, h100) == (4.0, 0.5, True)
    c = conv("Conv2D", ((8, 14, 14, 32), (3, 3, 32, 64)), (8, 14, 14, 64))
    implicit = product_of(c)
    assert implicit is not None
    rows = products_in_columns([implicit], terms_of(c, implicit, h100))
    assert rows.is_transferred
    assert isclose(float(rows.bytes[0]), bytes_of(c), rel_tol=1e-12)


def test_columns() -> None:
    """Rows stay in order, and measured layouts are told."""
    terms = terms_of(use("MatMul", ((1, 1), (1, 1)), (1, 1), DataType.BFLOAT16), Product(1, 1, 1), device_spec("V100"))
    rows = products_in_columns([Product(1, 2, 3, 4, "TN"), Product(5, 6, 7)], terms._replace(is_transferred=False))
    assert rows.layout == ("TN", "")
    np.testing.assert_array_equal(np.stack([rows.m, rows.n, rows.k, rows.batch]), [[1, 5], [2, 6], [3, 7], [4, 1]])
