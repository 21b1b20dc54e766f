"""Gradients of random numbers by the parameters of their distributions (Figurnov et al., 2018)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.gradient_rules import Forward, Gradients, gradient
from ...analysis.gradient_support import number, unstretch
from ...dtypes import numpy_dtype

if TYPE_CHECKING:
    from ...builder.handles import Tensor


@gradient("RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3")
def gamma(op: Forward, grad: Tensor) -> Gradients:
    """d alpha = g times RandomGammaGrad, summed over the samples of each alpha; shapes and seeds get none."""
    *others, alpha = op.inputs
    last = len(others)
    flowing = unstretch(op, grad * op.make("RandomGammaGrad", alpha, op.outputs[0]), last)
    return (*(None for _ in others), flowing)


def _below(op: Forward, x: Tensor) -> Tensor:
    """The probability that a standard normal number is below `x`."""
    return op.make("Erfc", x * -math.sqrt(0.5)) * 0.5


@gradient("StatelessParameterizedTruncatedNormal")
def stateless_parameterized_truncated_normal(op: Forward, grad: Tensor) -> Gradients:
    """By the quantile p that a sample x keeps when a parameter moves, x and the bounds a, b in deviations.

    d mean = g, d deviation = g x, d a = g (1 - p) exp((x^2 - a^2) / 2), d b = g p exp((x^2 - b^2) / 2).
    """
    _, _, mean, deviation, low, high = op.inputs
    x, a, b = ((value - mean) / deviation for value in (op.outputs[0], low, high))
    quantile = (_below(op, x) - _below(op, a)) / (_below(op, b) - _below(op, a))
    limits = np.finfo(numpy_dtype(op.output_types[0]))
    # The logarithms stay finite.
    quantile = op.make("Minimum", quantile, number(op, 1 - float(limits.eps), quantile))
    quantile = op.make("Maximum", quantile, number(op, float(limits.tiny), quantile))
    by_low = op.make("Exp", (x * x - a * a) * 0.5 + op.make("Log1p", -quantile))
    by_high = op.make("Exp", (x * x - b * b) * 0.5 + op.make("Log", quantile))
    flowing = (grad, grad * x, grad * by_low, grad * by_high)
    return None, None, *(unstretch(op, each, port) for port, each in enumerate(flowing, 2))
