"""Gradients of scans: the gradient is scanned in the opposite direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import conjugate
from ...dtypes import DataType

if TYPE_CHECKING:
    from ...builder.handles import Tensor


def _running(op: Forward, *, other_way: bool) -> dict[str, bool]:
    return {"exclusive": op.attrs["exclusive"], "reverse": op.attrs["reverse"] != other_way}


@gradient("Cumsum")
def cumsum(op: Forward, grad: Tensor) -> Gradients:
    return op.make("Cumsum", grad, op.inputs[1], **_running(op, other_way=True)), None


@gradient("Cumprod")
def cumprod(op: Forward, grad: Tensor) -> Gradients:
    """The running sum of y g in the opposite direction, divided by x (0 where x is 0)."""
    x, axis = op.inputs
    y = conjugate(op, op.outputs[0])
    summed = op.make("Cumsum", y * grad, axis, **_running(op, other_way=True))
    return op.make("DivNoNan", summed, conjugate(op, x)), None


@gradient("CumulativeLogsumexp")
def cumulative_logsumexp(op: Forward, grad: Tensor) -> Gradients:
    """d x_i = sum of g_j exp(x_i - y_j) over the j whose sums contain x_i.

    Computed with logarithms, for positive and negative g separately.
    """
    x, axis = op.inputs
    y = op.outputs[0]
    lowest = op.g.constant(np.finfo(np.float16 if x.dtype is DataType.HALF else np.float32).min, x.dtype)

    def part(sign: str, size: Tensor) -> Tensor:
        logs = op.make("SelectV2", op.make(sign, grad, op.g.constant(0, x.dtype)), op.make("Log", size), lowest)
        return op.make("Exp", op.make("CumulativeLogsumexp", logs - y, axis, **_running(op, other_way=True)) + x)

    return part("Greater", grad) - part("Less", -grad), None
