"""Ops that are whole layers with a fit of a family of kernels: attention to a cache.

    Partita>CachedAttention, 64 sequences, 8 of 32 heads, 4096 rows, bf16       rows of `DecodeRows`
    one tensor of 576 numbers a row, the first 512 of them the values           rows of `LatentDecodeRows`

What was measured is an operator of a serving framework, which embeds positions and writes the cache as well. It is
taken as a whole: the ops of a graph that do so are small beside it. Its measurements may have found a small cache in
the L2; in a step the weights of other layers were read since, so no op takes less than its bytes at the bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...kernels.op_forms import Layer
from ...spec import DeviceSpec
from ..fits.kernels.families import FAMILIES, family_of
from ..fits.kernels.kernel_model import KernelModel
from ..fits.kernels.kernel_rows import KernelRows
from .explanation import ExplainedNumber, Explanation
from .kernel_costs import KernelAnswer, KernelFits, kernel_answer
from .source import OpCost


def is_kernel_layer(layer: Layer) -> bool:
    """Whether the fits of the layer are of a family of kernels."""
    return layer.part in FAMILIES


def kernel_layer_answer(layer: Layer, spec: DeviceSpec, calibration: KernelFits) -> KernelAnswer:
    """The time in bf16, and the models that said it."""
    return kernel_answer(spec, _rows(layer), calibration)


def _rows(layer: Layer) -> KernelRows:
    columns = {name: [size] for name, size in layer.sizes.items()}
    return family_of(layer.part)({"dtype": ["bf16"], "cache": ["bf16"]}, columns)


def explain_kernel_layer(layer: Layer, cost: OpCost, spec: DeviceSpec, calibration: KernelFits) -> Explanation:
    """Sizes, fitted numbers, rows that are near, and what makes the time less sure."""
    rows, answer = _rows(layer), kernel_layer_answer(layer, spec, calibration)
    told = [model.explain(rows, 3) for model in answer.models]
    near = "; ".join(f"{row} (formula * {factor:.3g})" for row, factor in told[0].nearest)
    return Explanation(
        "",
        cost,
        "that of the operator in a serving framework, formula * a residual factor; at least bytes / bandwidth",
        {"kind": layer.kind, **{name: str(size) for name, size in layer.sizes.items()}},
        numbers=tuple(
            ExplainedNumber(name, f"{value:.4g} {unit}".rstrip(), _source(model))
            for model, said in zip(answer.models, told, strict=True)
            for name, value, unit in said.numbers
        ),
        rows=f"the nearest on {answer.models[0].spec.name}: {near}" if near else "",
        assumed=tuple(_assumed(answer, spec, is_outside=any(said.is_outside_range for said in told))),
    )


def _source(model: KernelModel[Any]) -> str:  # Any: rows of every family
    return ", ".join([f"fitted on {model.spec.name}", *(text for text in (model.source, model.date) if text)])


def _assumed(answer: KernelAnswer, spec: DeviceSpec, *, is_outside: bool) -> Iterator[str]:
    yield "the measured operator embeds positions and writes the cache too"
    if not answer.is_own:
        names = ", ".join(model.spec.name for model in answer.models)
        yield f"transferred from {names} by the datasheets: such layers were not measured on {spec.name}"
    if is_outside:
        yield "a size lies outside the fitted range: the interval is wider"
