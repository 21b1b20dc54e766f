"""Costs of whole layers: attention as one kernel, and grouped products of experts.

    attention_cost(device_spec("B200-SXM"), direction="fwd", batch=1, seq_len=4096, heads=64, kv_heads=8,
                   qk_head_dim=128, v_head_dim=128)          OpCost(..., provenance="fitted")
    the same on H100-SXM, which has no rows of attention     OpCost(..., provenance="transferred")

A device without such a fit takes the time of one that has it, times the ratio of how long a square product with as
many operations takes on each (sides of at most `MOST_SIDE`); where one of them has no model of products, times the
ratio of achieved bf16 rates (fp16 or fp32 on a device without it). Both widen the interval. The latency of attention
grows with the root of that ratio (`LayerModel.LATENCY_POWER`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from attrs import frozen

from ....graph.arrays import Floats
from ...spec import DeviceSpec
from ..fits.attention import Attentions
from ..fits.calibration import Calibration, DeviceFits
from ..fits.grouped import GroupedProducts
from ..fits.layer_model import LayerColumns, LayerModel
from ..fits.layers import with_interval
from ..fits.prediction import Prediction
from ..fits.products import TRANSFERRED_SPREAD, ProductModel, Products, bf16_peak
from .few_rows import held_by_bytes
from .source import OpCost, UnknownCost

MOST_SIDE = 8192
"""beyond it the efficiency of square products hardly changes"""
DATASHEET_SPREAD = 0.5
"""half of the 80 % interval that the ratio of achieved rates adds in log time: assumed"""


def attention_cost(
    spec: DeviceSpec,
    *,
    direction: str,
    batch: int,
    seq_len: int,
    heads: int,
    kv_heads: int,
    qk_head_dim: int,
    v_head_dim: int,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of one causal flash attention in bf16 on a GPU; `direction` is "fwd" or "bwd".

    The op `Partita>FlashAttention` has this time in a simulation (`layer_ops`). Operations are those of the full square
    of positions, of which a causal kernel does half; `calibration` None is the catalog's. Raises InvalidArgumentError
    for sizes below 1, and UnknownCost for a CPU and where no device of the calibration has a fit of attention.
    """
    sizes = {
        "batch": batch,
        "seq_len": seq_len,
        "heads": heads,
        "kv_heads": kv_heads,
        "qk_head_dim": qk_head_dim,
        "v_head_dim": v_head_dim,
    }
    asked = Attentions([direction], **{name: [size] for name, size in sizes.items()})
    return _cost(spec, "attention", asked, calibration)


def grouped_product_cost(
    spec: DeviceSpec,
    *,
    groups: int,
    m: int,
    n: int,
    k: int,
    stage: str,
    gradient_bytes: int = 4,
    calibration: Calibration | None = None,
) -> OpCost:
    """Time of `groups` bf16 products of m x k by k x n, as of experts, in one kernel on a GPU.

    `stage` is "fwd", "bwd_grad_act" or "bwd_grad_w"; the last adds to a buffer with `gradient_bytes` an element. The op
    `Partita>GroupedMatMul` has this time in a simulation (`layer_ops`). `calibration` None is the catalog's. Raises
    InvalidArgumentError for sizes below 1, and UnknownCost for a CPU and where no device of the calibration has a fit.
    """
    sizes = {"groups": groups, "m": m, "n": n, "k": k, "gradient_bytes": gradient_bytes}
    asked = GroupedProducts([stage], **{name: [size] for name, size in sizes.items()})
    return _cost(spec, "grouped", asked, calibration)


def _cost(spec: DeviceSpec, part: str, asked: LayerColumns, calibration: Calibration | None) -> OpCost:
    """The cost by the device's model of that part of its fits, or by another's."""
    said = answer_of(spec, part, asked, Calibration.of_catalog() if calibration is None else calibration).said
    return said.first_cost(asked.flops, asked.bytes)


class LayerAnswer(NamedTuple):
    """What was said of a layer, the model that said it, and the device that it was fitted to if that is another."""

    said: Prediction
    model: LayerModel[Any, Any]  # Any: of one part or another
    donor: str = ""


def answer_of(spec: DeviceSpec, part: str, asked: LayerColumns, calibration: LayerFits) -> LayerAnswer:
    """By the device's own model, or by another's; UnknownCost for a CPU, and where there is no model of that part."""
    if not spec.launches_kernels:
        raise UnknownCost(f"{spec.name} is a {spec.kind}, and {part} is modelled on GPUs; ask for a GPU")
    fits = calibration.device(spec.name)
    model = getattr(fits, part, None)
    if model is not None:
        return LayerAnswer(held_by_bytes(model.predict(asked), asked, model.ranges, spec), model)
    donor = next(iter(calibration.having(part)), None)
    if donor is None:
        raise UnknownCost(f"no device of the calibration has a fit of {part}; calibrate one from rows of {part}")
    products = getattr(fits, "products", None)
    model, said = getattr(donor, part), _transferred(donor, part, asked, _Target(spec, products))
    return LayerAnswer(held_by_bytes(said, asked, model.ranges, spec), model, donor.spec.name)


class LayerFits(Protocol):
    """Finds the models of layers; `Calibration` does."""

    def device(self, name: str) -> object:
        """The models of a device, those that it has; None for one without any."""
        ...

    def having(self, part: str) -> Iterable[DeviceFits]:
        """The devices that have a model of that part."""
        ...


@frozen
class _Target:
    """The device that a time is transferred to, and its model of products if it has one."""

    spec: DeviceSpec
    products: ProductModel | None


def _transferred(donor: DeviceFits, part: str, asked: LayerColumns, to: _Target) -> Prediction:
    """The time on the donor times the ratio of devices; never below what the target's peak rate allows."""
    model = getattr(donor, part)
    said: Prediction = model.predict(asked)
    ratio, ratio_half = _ratio(donor, to, asked.flops)
    half = np.hypot(np.log(said.high_ns / said.time_ns), ratio_half)
    share = model.operations_share(asked, said.time_ns)
    slower = ratio ** (model.LATENCY_POWER + (1 - model.LATENCY_POWER) * share)
    time_ns = np.maximum(said.time_ns * slower, model.least_ns(asked, bf16_peak(to.spec)))
    return with_interval(time_ns, half, "transferred")


def _ratio(donor: DeviceFits, to: _Target, flops: Floats) -> tuple[Floats | float, float]:
    """How many times as long the target takes, by row, and half of the 80 % interval that this adds in log time."""
    if to.products is None or donor.products is None:
        rates = [bf16_peak(spec) * spec.matrix_efficiency for spec in (donor.spec, to.spec)]
        return rates[0] / rates[1], DATASHEET_SPREAD
    side = np.clip(np.round(np.cbrt(flops / 2)), 1, MOST_SIDE).astype(np.int64)
    square = Products(side, side, side, np.ones_like(side))
    times = [model.predict(square).time_ns for model in (donor.products, to.products)]
    return times[1] / times[0], TRANSFERRED_SPREAD
