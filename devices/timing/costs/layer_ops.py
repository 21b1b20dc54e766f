"""Ops that are whole layers, priced by the fits of such layers.

Partita>FlashAttention, causal, 4096 queries and keys, 8 heads of 128, bf16
    on B200-SXM                 95 us, "fitted"
    on H100-SXM                 the same times the ratio of products on both, "transferred"
    one query of a long cache   no layer: its bytes decide (`FittedSource`)

Partita>CachedAttention         a decode step as serving frameworks have it (`kernel_layers`)

Fits are of bf16: another type takes as much longer as the peak of its units is lower, and is less sure. No op takes
less than the floor of a kernel, and its bytes at the bandwidth that the device reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import ceil, floor
from typing import Any

import numpy as np

from ....graph.dtypes import DataType, base_type, dtype_name
from ...kernels import op_cost
from ...kernels.op_cost import CostContext
from ...kernels.op_forms import Layer
from ...spec import DeviceSpec
from ..fits.attention import Attentions
from ..fits.grouped import GroupedProducts
from ..fits.layer_model import LayerColumns
from ..fits.layers import octaves_outside
from ..fits.products import TRANSFERRED_SPREAD, bf16_peak
from .explanation import ExplainedNumber, Explanation
from .kernel_layers import explain_kernel_layer, is_kernel_layer, kernel_layer_answer
from .layer_costs import LayerAnswer, LayerFits, answer_of
from .source import OpCost, rate_type

_COLUMNS: Mapping[str, Callable[..., LayerColumns]] = {"attention": Attentions, "grouped": GroupedProducts}
_FORMULAS = {
    "attention": "the soft maximum of the latency of the longest way along keys, and operations / rate",
    "grouped": "the soft maximum of each group's latency and bytes, one after the other, and operations / rate",
}


def layer_cost(c: CostContext, layer: Layer, spec: DeviceSpec, calibration: LayerFits) -> OpCost:
    """The time of a layer with the operations and bytes of the op; UnknownCost where no device has such a fit."""
    slower, half = _of_type(c, spec)
    if is_kernel_layer(layer):
        said, half = kernel_layer_answer(layer, spec, calibration).said, 0.0  # rows are of 16 bits
    else:
        said = answer_of(spec, layer.part, _columns(layer), calibration).said
    time_ns, low_ns, high_ns = (float(column[0]) * slower for column in said[:3])
    wider = np.exp(np.hypot(np.log(high_ns / time_ns), half))
    moved = op_cost.bytes_of(c)
    time_ns = max(time_ns, moved * 1e9 / spec.achieved_bytes_per_s + spec.op_overhead_ns)
    provenance = said.provenance if half == 0 else "transferred"
    low_ns, high_ns = floor(time_ns / wider), ceil(time_ns * wider)
    return OpCost(round(time_ns), op_cost.flops_of(c), moved, provenance, low_ns, high_ns)


def _columns(layer: Layer) -> LayerColumns:
    return _COLUMNS[layer.part]([layer.kind], **{name: [size] for name, size in layer.sizes.items()})


def _of_type(c: CostContext, spec: DeviceSpec) -> tuple[float, float]:
    """How many times as long as in bf16 the layer takes in its type, and half of the interval that this adds."""
    dtype = base_type(rate_type(c))
    if dtype is DataType.BFLOAT16:
        return 1.0, 0.0
    return bf16_peak(spec) / spec.peak_flops_per_s[spec.family(dtype, matrix=True)], TRANSFERRED_SPREAD


def explain_layer(c: CostContext, layer: Layer, cost: OpCost, spec: DeviceSpec, calibration: LayerFits) -> Explanation:
    """Sizes, fitted numbers and the device that they are of, and what makes the time less sure."""
    if is_kernel_layer(layer):
        return explain_kernel_layer(layer, cost, spec, calibration)
    asked = _columns(layer)
    answer = answer_of(spec, layer.part, asked, calibration)
    model = answer.model
    where = f"fitted on {answer.donor}" if answer.donor else "fitted"
    source = ", ".join([where, *(text for text in (model.source, model.date) if text)])
    units: Mapping[str, Any] = model.UNITS
    numbers = zip(units.items(), model.numbers[layer.kind], strict=True)
    return Explanation(
        "",
        cost,
        _FORMULAS[layer.part],
        {"kind": layer.kind, **{name: str(size) for name, size in layer.sizes.items()}},
        numbers=tuple(ExplainedNumber(name, f"{value:.6g} {unit}".rstrip(), source) for (name, unit), value in numbers),
        assumed=tuple(_assumed(c, asked, answer, spec)),
    )


def _assumed(c: CostContext, asked: LayerColumns, answer: LayerAnswer, spec: DeviceSpec) -> Iterator[str]:
    if answer.donor:
        yield (
            f"transferred from {answer.donor}: such layers were not measured on {spec.name}; the time there, times the "
            "ratio of a product with as many operations"
        )
    if octaves_outside(asked.sizes, answer.model.ranges).any():
        yield "a size lies outside the fitted range: the interval is wider"
    slower, half = _of_type(c, spec)
    if half:
        dtype = dtype_name(rate_type(c))
        yield f"another type than bf16, {dtype}: the time is that of bf16 * {slower:.4g}, by the peak rates"
