"""Ops as matrix products in columns: what a fitted model of products is asked about products and convolutions.

    MatMul (64, 128) x (256, 128), transpose_b, float32 on H100-SXM
        ->  m 64, n 256, k 128, layout TN, 4 bytes an element, 0.5 of the bf16 rate (tf32), transferred

`kernels/op_cost.py` says which product an op is. A model is fitted to bf16 products: another element type scales its
rates by the peak of the type's units and its bytes by the size of an element; float16, which has the same units, runs
as bf16 where the peaks are the same. The bytes of a convolution are those of
its image, filter and result and not those of the patches that an implicit product stands for, which the size of an
element accounts for. So it does where an op rounds its factors and not its result. Convolutions and batches have no
measured rows, so they are "transferred" too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....graph.dtypes import DataType, base_type, item_size
from ...kernels.op_cost import CostContext, bytes_of, computed_in
from ...kernels.op_forms import Product
from ...spec import DeviceSpec
from ..costs.source import rate_type
from .products import Products, bf16_peak


class OpProductTerms(NamedTuple):
    """How an op's product differs from a measured one: what the rows of one `Products` have in common."""

    item_bytes: float
    rate_ratio: float
    is_transferred: bool


def terms_of(c: CostContext, product: Product, spec: DeviceSpec) -> OpProductTerms:
    """Size of an element, rate by that of bf16, and whether the model was fitted for something else."""
    dtype = rate_type(c)
    item_bytes = float(item_size(dtype))
    if product.is_implicit or computed_in(c.op) is not None:
        m, n, k, batch = product[:4]
        item_bytes = bytes_of(c) / (batch * (m * k + k * n + m * n))
    rate, peak = spec.peak_flops_per_s[spec.family(dtype, matrix=True)], bf16_peak(spec)
    runs_as_bf16 = base_type(dtype) in (DataType.BFLOAT16, DataType.HALF) and rate == peak
    is_measured = runs_as_bf16 and product.batch == 1 and not product.is_implicit
    return OpProductTerms(item_bytes, rate / peak, not is_measured)


def products_in_columns(rows: Sequence[Product], terms: OpProductTerms) -> Products:
    """Products with the same terms, one a row."""
    m, n, k, batch = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4).T
    layout = None if terms.is_transferred else tuple(row.layout for row in rows)
    return Products(m, n, k, batch, layout, *terms)
