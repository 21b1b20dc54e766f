"""Costs of one matrix product as a serving framework runs it, in 16 bits and below.

    product_cost(device_spec("H100-SXM"), m=64, n=4096, k=4096, dtype="fp8")       OpCost(..., provenance="fitted")
    the same on H100-PCIe, which nobody measured                                   OpCost(..., provenance="transferred")
    the same on A100-80GB        InvalidArgumentError: A100-80GB has no fp8 units, ...; it has fp64, fp32, ...

Time is that of kernels alone, as replays of a graph of kernels take it: no launch of the host is in it.
"""

from __future__ import annotations

import numpy as np
from attrs import evolve

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion
from ...spec import DeviceSpec
from ..fits.calibration import Calibration, DeviceFits
from ..fits.kernels.element_types import rate_of
from ..fits.kernels.kernel_model import at_least
from ..fits.kernels.low_bit import DTYPES as LOW_BIT_DTYPES, LowBitProducts
from ..fits.kernels.transferred import distance
from ..fits.layers import with_interval
from ..fits.prediction import Prediction
from ..fits.products import TRANSFERRED_SPREAD, Products, datasheet_ns
from .kernel_costs import kernel_cost
from .source import OpCost, UnknownCost

PRODUCT_DTYPES = ("bf16", *LOW_BIT_DTYPES)


def product_cost(
    spec: DeviceSpec, *, m: int, n: int, k: int, dtype: str, calibration: Calibration | None = None
) -> OpCost:
    """Time of the product of an m x k input by k x n weights on a GPU, with a 16-bit result.

    `dtype` says what is multiplied and what the time includes:

    - "bf16": the product alone, by the fit of bf16 products.
    - "fp8" (one scale a tensor), "fp8_block" (scales of 128 x 128 weights and of 128 inputs) and "nvfp4" (a scale of 16
      elements): the 16-bit input is quantised within the time.
    - "int8": the product alone, of an input that is int8 already.
    - "int8_weights" and "int4_weights": 16-bit input and arithmetic, narrow weights.

    Weights come from memory, unless they are of a size that the measurements kept in the L2 (`fits/kernels/low_bit`).
    `calibration` None is the catalog's. Raises InvalidArgumentError for sizes below 1, an unknown type, and a type
    whose units the GPU lacks; UnknownCost for a CPU and where no device of the calibration has a fit of that type.
    """
    if dtype not in PRODUCT_DTYPES:
        hint = suggestion(dtype, PRODUCT_DTYPES)
        raise InvalidArgumentError(f"dtype {dtype!r} is not known; it must be one of {', '.join(PRODUCT_DTYPES)}{hint}")
    if dtype == "bf16":
        return _bf16_cost(spec, m, n, k, Calibration.of_catalog() if calibration is None else calibration)
    rows = LowBitProducts({"dtype": [dtype]}, {"m": [m], "n": [n], "k": [k]})
    if spec.launches_kernels:
        rate_of(spec, dtype)
    return kernel_cost(spec, rows, calibration)


def _bf16_cost(spec: DeviceSpec, m: int, n: int, k: int, calibration: Calibration) -> OpCost:
    asked = Products(np.array([m]), np.array([n]), np.array([k]), np.array([1]))
    return products_answer(spec, asked, calibration).first_cost(asked.flops, asked.bytes)


def products_answer(spec: DeviceSpec, asked: Products, calibration: Calibration) -> Prediction:
    """Times of 16-bit products by the device's fit, or by that of the nearest datasheet; UnknownCost as `product_cost`.

    Products that say they are transferred (of float32, say) are asked of the formula alone.
    """
    if not spec.launches_kernels:
        raise UnknownCost(f"{spec.name} is a {spec.kind}, and single products are modelled on GPUs; ask for a GPU")
    fits = calibration.device(spec.name)
    own = None if fits is None else fits.products
    said = (
        own.predict(asked) if own is not None else _transferred(spec, evolve(asked, is_transferred=True), calibration)
    )
    return at_least(said, float(spec.kernel_floor_ns))


def _transferred(spec: DeviceSpec, asked: Products, calibration: Calibration) -> Prediction:
    """The time on the device with the nearest datasheet, by the ratio of what the datasheets say."""

    def away(fits: DeviceFits) -> float:
        return distance(spec, fits.spec)

    donor = min(calibration.having("products"), key=away, default=None)
    if donor is None or donor.products is None:
        raise UnknownCost("no device of the calibration has a fit of products; calibrate one from measured products")
    said = donor.products.predict(asked)
    scale = datasheet_ns(asked, spec) / datasheet_ns(asked, donor.spec)
    half = np.hypot(np.log(said.high_ns / said.time_ns), TRANSFERRED_SPREAD)
    return with_interval(said.time_ns * scale, half, "transferred")
