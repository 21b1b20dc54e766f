"""Ops that are products below 16 bits, priced by the device's own fit of such products.

    Partita>Float8MatMul (4096, 2048) x (2048, 8192) on H100-SXM     "fitted": quantising of one factor, product
    the same on L4, which nobody measured                            no concern of these: bf16 products by the rates

The measured kernel quantises its 16-bit left factor. The other factor, weights, is quantised already.
"""

from __future__ import annotations

from ....graph.dtypes import DataType
from ...kernels.kernel_run import KernelRun
from ...kernels.op_cost import CostContext, computed_in
from ...kernels.op_forms import Product
from ...spec import DeviceSpec
from ..fits.calibration import Calibration
from ..fits.kernels.low_bit import LowBitProducts
from .kernel_ops import OpRun

_FLOAT8 = "fp8"
"""the group of products with one scale a tensor"""


def float8_run(c: CostContext, product: Product | None, spec: DeviceSpec, calibration: Calibration) -> OpRun | None:
    """The measured product that an op in 8-bit floats is; None for other ops, and where the device has no fit of it."""
    if product is None or product.is_implicit or product.batch != 1:
        return None
    if computed_in(c.op) is not DataType.FLOAT8_E4M3FN:
        return None
    fits = calibration.device(spec.name)
    model = None if fits is None else fits.kernels(LowBitProducts.PART)
    if model is None or _FLOAT8 not in model.groups:
        return None
    sizes = {"m": product.m, "n": product.n, "k": product.k}
    return OpRun(KernelRun(LowBitProducts.PART, {"dtype": _FLOAT8}, sizes), is_like=False)
