"""GELU (Hendrycks and Gimpel 2016), SiLU times a second factor (SwiGLU: Shazeer 2020), and their gradients.

    gelu(x) = x Phi(x), the normal distribution function, or x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
    gated silu(gate, up) = gate sigmoid(gate) up

Half types are computed in float32 and rounded once, where a graph of single ops rounds after each.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array
from ..elementwise.igamma import scipy_special
from ..half_types import widen
from ..registry import Construction, Kernel, kernel

_CUBIC = 0.044715
_SLOPE = sqrt(2 / pi)


@kernel("Partita>Gelu")
def gelu(node: Construction) -> Kernel:
    """x times the share of the normal distribution below x."""
    share = _share_by_tanh if node.attrs["approximate"] else _share

    def activate(x: Array) -> Array:
        wide = widen(x)
        return np.asarray(wide * share(wide), x.dtype)

    return activate


@kernel("Partita>GeluGrad")
def gelu_grad(node: Construction) -> Kernel:
    """d_y (Phi(x) + x Phi'(x))."""
    share = _share_by_tanh if node.attrs["approximate"] else _share
    slope_of = _slope_by_tanh if node.attrs["approximate"] else _slope

    def gradient(x: Array, d_y: Array) -> Array:
        _same_shape("d_y", d_y, x)
        wide = widen(x)
        return np.asarray((share(wide) + wide * slope_of(wide)) * widen(d_y), x.dtype)

    return gradient


@kernel("Partita>GatedSilu")
def gated_silu(_node: Construction) -> Kernel:
    """gate * sigmoid(gate) * up."""

    def activate(gate: Array, up: Array) -> Array:
        _same_shape("up", up, gate)
        wide = widen(gate)
        return np.asarray(wide * _sigmoid(wide) * widen(up), gate.dtype)

    return activate


@kernel("Partita>GatedSiluGrad")
def gated_silu_grad(_node: Construction) -> Kernel:
    """With s = sigmoid(gate): d_gate = d_y up s (1 + gate (1 - s)), d_up = d_y gate s."""

    def gradient(gate: Array, up: Array, d_y: Array) -> tuple[Array, Array]:
        _same_shape("up", up, gate)
        _same_shape("d_y", d_y, gate)
        wide, slopes = widen(gate), widen(d_y)
        share = _sigmoid(wide)
        d_gate = slopes * widen(up) * share * (1 + wide * (1 - share))
        return np.asarray(d_gate, gate.dtype), np.asarray(slopes * wide * share, gate.dtype)

    return gradient


def _same_shape(name: str, given: Array, wanted: Array) -> None:
    if given.shape != wanted.shape:
        raise InvalidArgumentError(
            f"{name} has the shape {shape_text(given.shape)}, but the first input has {shape_text(wanted.shape)}"
        )


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _share(x: Array) -> Array:
    """Phi(x)."""
    return np.asarray(scipy_special("ndtr")(x))


def _slope(x: Array) -> Array:
    """Phi'(x), the density."""
    return np.asarray(np.exp(np.square(x) * -0.5) * (1 / sqrt(2 * pi)))


def _share_by_tanh(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(_inner(x))))


def _slope_by_tanh(x: Array) -> Array:
    inner_slope = _SLOPE * (1 + 3 * _CUBIC * np.square(x))
    return np.asarray(0.5 * (1 - np.square(np.tanh(_inner(x)))) * inner_slope)


def _inner(x: Array) -> Array:
    return np.asarray(_SLOPE * (x + _CUBIC * x * np.square(x)))
