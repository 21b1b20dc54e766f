"""Ops that are float32 convolutions of images, priced by the fits of convolutions.

    Conv2D (64, 56, 56, 64) x (3, 3, 64, 64) on P100-PCIe            "fitted" were it NCHW; "transferred", wider
    Conv2DBackpropFilter, DepthwiseConv2dNative                      "transferred"
    the same in half precision, or as TF32 on tensor cores           no concern of these: an implicit product

Only ops whose type runs on the units for float32 are asked about here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor

import numpy as np

from ....graph.arrays import Floats
from ....graph.dtypes import DataType, base_type
from ...kernels import op_cost
from ...kernels.op_cost import CostContext
from ...kernels.op_forms import Convolution
from ...spec import DeviceSpec
from ..fits.kernels.convolution_algorithms import ALGORITHMS, WORD
from ..fits.kernels.convolutions import Convolutions, is_before_maxwell
from ..fits.kernels.kernel_model import KernelModel
from .convolution_costs import ConvolutionAnswer, ConvolutionFits, convolution_answer, is_measured, least_kernel_ns
from .explanation import ExplainedNumber, Explanation
from .source import OpCost, rate_type

_MEASURED_LAYOUT = "NCHW"
_SECTOR = 32.0
"""bytes that memory moves at a time"""


def float32_convolution(c: CostContext, spec: DeviceSpec) -> Convolution | None:
    """The convolution that an op is, if it runs on the units for float32."""
    dtype = rate_type(c)
    if base_type(dtype) is not DataType.FLOAT or spec.family(dtype, matrix=op_cost.is_matrix(c.op)) != "fp32":
        return None
    return op_cost.convolution_of(c)


def _columns(asked: Sequence[Convolution]) -> Convolutions:
    counts = {
        "images": [of.images for of in asked],
        "rows": [of.rows for of in asked],
        "columns": [of.columns for of in asked],
        "channels": [of.channels for of in asked],
        "filters": [of.filters for of in asked],
        "tall": [of.tall for of in asked],
        "broad": [of.broad for of in asked],
        "stride": [of.stride for of in asked],
        "groups": [of.groups for of in asked],
    }
    return Convolutions({"pass": [of.direction for of in asked]}, counts)


def _measured(asked: Sequence[Convolution], rows: Convolutions) -> Floats:
    """1 for those of the kind that was measured, 0 for others."""
    is_plain = [of.layout == _MEASURED_LAYOUT and not of.is_dilated for of in asked]
    return is_measured(rows) * np.array(is_plain, dtype=np.float64)


def convolution_costs(
    contexts: Sequence[CostContext], asked: Sequence[Convolution], spec: DeviceSpec, calibration: ConvolutionFits
) -> list[OpCost]:
    """The times of convolutions on one device, with operations and bytes of their ops; errors of the answer."""
    rows = _columns(asked)
    measured = _measured(asked, rows)
    answer = convolution_answer(spec, rows, measured, calibration)
    shuffled_ns = _shuffled_ns(rows, spec)
    columns = (column.tolist() for column in (measured, *(times + shuffled_ns for times in answer.said[:3])))
    return [
        OpCost(
            round(time_ns),
            op_cost.flops_of(c),
            op_cost.bytes_of(c),
            "fitted" if answer.is_own and is_known else "transferred",
            floor(low_ns),
            ceil(high_ns),
        )
        for c, is_known, time_ns, low_ns, high_ns in zip(contexts, *columns, strict=True)
    ]


def _shuffled_ns(rows: Convolutions, spec: DeviceSpec) -> Floats:
    """The kernel in which TensorFlow brings filters from its layout, HWIO, to that of the library, OIHW, or back.

    One of read and write jumps from point to point, and moves a sector for each.
    """
    elements = (
        rows.size("tall") * rows.size("broad") * rows.size("channels") * rows.size("filters") / rows.size("groups")
    )
    return least_kernel_ns(spec) + elements * (_SECTOR + WORD) * 1e9 / spec.achieved_bytes_per_s


def explain_convolution(of: Convolution, cost: OpCost, spec: DeviceSpec, calibration: ConvolutionFits) -> Explanation:
    """Sizes, the algorithm and what others would take, fitted numbers, and what makes the time less sure."""
    rows = _columns([of])
    measured = _measured([of], rows)
    answer = convolution_answer(spec, rows, measured, calibration)
    said = [model.explain(rows, 3) for model in answer.models]
    times = zip(ALGORITHMS, answer.times_ns[:, 0].tolist(), strict=True)
    numbers = (
        ExplainedNumber(name, f"{value:.4g} {unit}".rstrip(), _source(model))
        for model, told in zip(answer.models, said, strict=True)
        for name, value, unit in told.numbers[1:]
    )
    near = "; ".join(f"{row} (formula * {factor:.3g})" for row, factor in said[0].nearest)
    return Explanation(
        "",
        cost,
        "that of the fastest algorithm, * a residual factor, + the change of the filters' layout",
        {"pass": of.direction, **{name: str(column[0]) for name, column in rows.counts.items()}},
        f"algorithm: {answer.algorithms[0]}",
        tuple(numbers),
        f"the nearest on {answer.models[0].spec.name}: {near}" if near else "",
        assumed=tuple(_assumed(of, answer, spec, is_known=bool(measured[0]))),
        terms={name: f"{time_ns:.0f} ns" for name, time_ns in times if np.isfinite(time_ns)}
        | {"filters from HWIO or back": f"{_shuffled_ns(rows, spec)[0]:.0f} ns"},
    )


def _source(model: KernelModel[Convolutions]) -> str:
    return ", ".join([f"fitted on {model.spec.name}", *(text for text in (model.source, model.date) if text)])


def _assumed(of: Convolution, answer: ConvolutionAnswer, spec: DeviceSpec, *, is_known: bool) -> Iterator[str]:
    if not answer.is_own:
        names = ", ".join(model.spec.name for model in answer.models)
        yield f"transferred from {names} by the datasheets: convolutions were not measured on {spec.name}"
    if not is_known:
        yield "measured were forward passes of 3 x 3 filters moved by 1 in NCHW: this one follows the same arithmetic"
    if is_before_maxwell(spec):
        yield f"{spec.name} is of a generation before Maxwell: it has no fused Winograd kernels, and lower rates"
    if spec.sustained_clock != 1:
        yield f"under load the device keeps {100 * spec.sustained_clock:.3g} % of the clock of its peak"
