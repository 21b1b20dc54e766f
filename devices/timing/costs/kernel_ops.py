"""Ops that are kernels of measured families: which one, and what the fits of the device, or of others, say of many.

    MatMul in float32, no TF32      a product of `products_fp32`, "linear"; of a batch "bmm"
    Softmax, Partita>LayerNorm      as their families' costs declare (`kernels/kernel_run.py`)
    Relu, AddV2, Sum, Transpose     a streaming kernel that moves as many bytes

A row of another type than the measured one, and an op that is only like a measured kernel, are "transferred".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ....graph.dtypes import DataType
from ....graph.ops.record import record_of
from ...kernels import op_cost
from ...kernels.kernel_run import (
    FLOAT_BYTES,
    PRODUCTS,
    STREAMS,
    KernelRun,
    arrays_of,
    kernel_run_of,
    kernels_of_parts,
    product_of_batch,
    stream_kind,
)
from ...kernels.op_cost import CostContext
from ...kernels.op_forms import Product
from ...spec import DeviceSpec
from ..fits.calibration import Calibration
from ..fits.kernels.elementwise import ElementwiseRows
from ..fits.kernels.families import family_of
from ..fits.kernels.kernel_rows import KernelRows
from ..fits.layers import with_interval
from ..fits.prediction import Prediction
from .explanation import ExplainedNumber, Explanation
from .kernel_costs import KernelAnswer, kernel_answer
from .source import OpCost, Provenance, rate_type

LIKE_ANY = "relu"
"""the measured kernel that stands for what only moves bytes"""
LIKE_SPREAD = 0.3
"""half of the 80 % interval, in log time, that being like a measured kernel adds: assumed"""
_UNKNOWN = OpCost(0, 0, 0, "fitted")  # the caller enters the cost


class OpRun(NamedTuple):
    """A kernel that an op is, and whether it was measured or is like one that was."""

    run: KernelRun
    is_like: bool

    @property
    def key(self) -> tuple[str, ...]:
        """Runs with the same key are asked about together."""
        return (self.run.part, *self.run.texts.values())


def declared_run(c: CostContext) -> OpRun | None:
    """The kernel that the op's declaration names."""
    run = kernel_run_of(c)
    return None if run is None else OpRun(run, run.times != 1 or _is_other_type(c))


def product_run(c: CostContext, product: Product | None, spec: DeviceSpec) -> OpRun | None:
    """A product that runs in float32 on the vector units; None for others."""
    if product is None or product.is_implicit or rate_type(c) is not DataType.FLOAT:
        return None
    if spec.family(DataType.FLOAT, matrix=True) != "fp32":
        return None
    m, n, k, batch = product[:4]
    return OpRun(product_of_batch(batch, m, n, k), is_like=False)


def part_runs(c: CostContext, spec: DeviceSpec) -> list[OpRun]:
    """The kernels that an op of float32 takes for want of one for the whole; none for other ops and types."""
    if rate_type(c) is not DataType.FLOAT or spec.family(DataType.FLOAT, matrix=True) != "fp32":
        return []
    return [OpRun(run, run.times != 1) for run in kernels_of_parts(c)]


def sum_of_parts(runs: Sequence[OpRun], spec: DeviceSpec, calibration: Calibration) -> Prediction:
    """The time of kernels one after the other, which err together; one row, of what nobody measured as a whole."""
    said = [answers([run], spec, calibration) for run in runs]
    time_ns, low_ns, high_ns = (np.sum(columns, axis=0) for columns in zip(*(each[:3] for each in said), strict=True))
    return Prediction(time_ns, low_ns, high_ns, "transferred")


def explain_parts(runs: Sequence[OpRun], spec: DeviceSpec, calibration: Calibration) -> Explanation:
    """The kernels and their times."""
    times = [float(answers([run], spec, calibration).time_ns[0]) for run in runs]
    names = [" ".join([*run.run.texts.values(), " x ".join(map(str, run.run.sizes.values()))]) for run in runs]
    return Explanation(
        "",
        _UNKNOWN,
        "the sum of the kernels of its parts",
        terms={f"{i + 1}. {name}": f"{time:.0f} ns" for i, (name, time) in enumerate(zip(names, times, strict=True))},
        assumed=("float32 has no kernel for the whole: products, softmax and what is between them keep all scores",),
    )


def stream_run(c: CostContext) -> OpRun:
    """The streaming kernel that moves as many bytes as the op; InvalidArgumentError when its shapes cannot be right."""
    kind = stream_kind(c)
    run = KernelRun(STREAMS, {"op": kind}, {"rows": 1, "columns": elements_of(op_cost.bytes_of(c), kind)})
    return OpRun(run, is_like_stream(c, kind))


def elements_of(moved: int, kind: str) -> int:
    """Elements of the arrays of a measured kernel that moves so many bytes."""
    return max(1, -(-moved // (arrays_of(kind) * FLOAT_BYTES)))


def is_like_stream(c: CostContext, kind: str) -> bool:
    """Whether an op is not the measured kernel itself, but like it."""
    return kind == LIKE_ANY or not record_of(c.op).in_place or _is_other_type(c)


def stream_answers(kind: str, elements: Sequence[int], spec: DeviceSpec, calibration: Calibration) -> Prediction:
    """Times of streaming kernels, one a row."""
    rows = ElementwiseRows({"op": [kind] * len(elements)}, {"rows": [1] * len(elements), "columns": elements})
    return kernel_answer(spec, rows, calibration).said


def _is_other_type(c: CostContext) -> bool:
    return rate_type(c) is not DataType.FLOAT


def answers(runs: Sequence[OpRun], spec: DeviceSpec, calibration: Calibration) -> Prediction:
    """Times of runs with the same key, one a row; UnknownCost where no device has a fit of such kernels."""
    said = _answer([each.run for each in runs], spec, calibration).said
    times = np.array([each.run.times for each in runs])
    like = np.where([each.is_like for each in runs], LIKE_SPREAD, 0.0)
    half = np.hypot(np.log(said.high_ns / said.time_ns), like)
    floor_ns = family_of(runs[0].run.part).floor_ns(spec)
    wider = with_interval(np.maximum(said.time_ns * times, floor_ns), half, said.provenance)
    return wider._replace(low_ns=np.maximum(wider.low_ns, floor_ns))


def product_provenance(c: CostContext, said: Prediction) -> Provenance:
    """That of a prediction by a fit of bf16: "transferred" for float16, which has the same units."""
    is_measured = c.input_types[0] is DataType.BFLOAT16 or rate_type(c) is DataType.BFLOAT16
    return said.provenance if is_measured else "transferred"


def _answer(runs: Sequence[KernelRun], spec: DeviceSpec, calibration: Calibration) -> KernelAnswer:
    return kernel_answer(spec, rows_of(runs), calibration)


def rows_of(runs: Sequence[KernelRun]) -> KernelRows:
    """Runs of one part as rows of its family."""
    family = family_of(runs[0].part)
    texts = {name: [run.texts[name] for run in runs] for name in family.TEXTS}
    return family(texts, {name: [run.sizes[name] for run in runs] for name in family.COUNTS})


def explain_run(each: OpRun, spec: DeviceSpec, calibration: Calibration) -> Explanation:
    """The kernel that the op is or is like, its formula and numbers, and whose measurements they are."""
    run, rows = each.run, rows_of([each.run])
    answer = _answer([run], spec, calibration)
    model = answer.models[0]
    said = model.explain(rows)
    source = ", ".join(["fitted", *(text for text in (model.source, model.date) if text)])
    numbers = [ExplainedNumber(name, f"{value:.6g} {unit}".rstrip(), source) for name, value, unit in said.numbers]
    inputs = {name: str(value) for name, value in (*run.texts.items(), *run.sizes.items())}
    near = ", ".join(f"{text} (formula * {factor:.3g})" for text, factor in said.nearest[:3])
    return Explanation(
        "",
        _UNKNOWN,
        f"{rows.FORMULA}{' * residual factor' if said.nearest else ''}{f' * {run.times:g}' if run.times != 1 else ''}",
        {"kernel": rows.WHAT, **inputs},
        numbers=tuple(numbers) if answer.is_own else (),
        rows=f"the nearest: {near}" if near and answer.is_own else "",
        assumed=tuple(_assumed(each, answer, is_outside=said.is_outside_range)),
        terms={"formula": f"{said.formula_ns:.0f} ns", "residual factor": f"{said.residual_factor:.4g}"}
        if answer.is_own
        else {},
    )


def _assumed(each: OpRun, answer: KernelAnswer, *, is_outside: bool) -> Iterator[str]:
    if not answer.is_own:
        donors = ", ".join(model.spec.name for model in answer.models)
        yield f"such kernels of this device were not measured: those of {donors} by the ratio of datasheets"
    if each.is_like:
        yield "the op is like the measured kernel: as fast for its bytes"
    if is_outside and answer.is_own:
        yield "a size lies outside the fitted range: the formula speaks, and the interval is wider"
    if each.run.part == PRODUCTS:
        yield "the layout of the factors makes no difference: the rows do not tell"
