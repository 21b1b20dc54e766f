"""Activation functions and their gradients, element by element.

Half types are computed in float32; a gradient op checks that its two inputs have one shape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..elementwise.choosing import choose
from ..elementwise.exponential import exp_float32
from ..half_types import in_float32, is_half
from ..registry import Construction, Kernel, kernel
from .rectifier import rectified

Unary = Callable[[Array], Array]
ActivationGradient = Callable[[Array, Array], Array]

# Klambauer et al., Self-Normalizing Neural Networks (2017), appendix 1.
_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _elementwise(op: str, make: Callable[[Construction], Unary]) -> None:
    kernel(op)(lambda node: in_float32(make(node), node.output_types[0]))


def _gradient(op: str, make: Callable[[Construction], ActivationGradient]) -> None:
    def factory(node: Construction) -> Kernel:
        compute = make(node)

        def checked(gradients: Array, features: Array) -> Array:
            if gradients.shape != features.shape:
                raise InvalidArgumentError(
                    f"Inputs to operation {node.name} of type {op} must have the same size and shape.  "
                    f"Input 0: {shape_text(gradients.shape)} != input 1: {shape_text(features.shape)}"
                )
            return compute(gradients, features)

        return in_float32(checked, node.output_types[0])

    kernel(op)(factory)


def _constants(node: Construction, *values: float) -> list[np.generic]:
    """`values` in the type that the node computes in, so that they do not widen its results."""
    dtype = numpy_dtype(node.output_types[0])
    return [(np.float32 if is_half(dtype) else dtype.type)(value) for value in values]


def _relu_grad(node: Construction) -> ActivationGradient:
    (zero,) = _constants(node, 0)

    def gradient(g: Array, f: Array) -> Array:
        passing = (f > zero).astype(g.dtype)  # multiplying is several times as fast as np.where
        passing *= g
        return passing

    return gradient


def _relu6(node: Construction) -> Unary:
    zero, six = _constants(node, 0, 6)
    return lambda x: np.clip(x, zero, six)


def _relu6_grad(node: Construction) -> ActivationGradient:
    zero, six = _constants(node, 0, 6)

    def gradient(g: Array, f: Array) -> Array:
        passing = ((f > zero) & (f < six)).astype(g.dtype)
        passing *= g
        return passing

    return gradient


def _elu(node: Construction) -> Unary:
    """exp(x) - 1 below 0, from the rounded exponential: inexact near 0, as in TensorFlow."""
    zero, one = _constants(node, 0, 1)
    return lambda x: exp_float32(np.minimum(x, zero)) - one + np.maximum(x, zero)


def _elu_grad(node: Construction) -> ActivationGradient:
    """The second input is the activation, not the feature."""
    zero, one = _constants(node, 0, 1)
    return lambda g, y: choose(y < zero, g * (y + one), g)


def _selu(node: Construction) -> Unary:
    zero, one, scale, scale_alpha = _constants(node, 0, 1, _SELU_SCALE, _SELU_SCALE_ALPHA)
    return lambda x: choose(x < zero, scale_alpha * (exp_float32(np.minimum(x, zero)) - one), scale * x)


def _selu_grad(node: Construction) -> ActivationGradient:
    """The second input is the activation, not the feature."""
    zero, scale, scale_alpha = _constants(node, 0, _SELU_SCALE, _SELU_SCALE_ALPHA)
    return lambda g, y: choose(y < zero, g * (y + scale_alpha), g * scale)


def _leaky_relu(node: Construction) -> Unary:
    zero, alpha = _constants(node, 0, node.attrs["alpha"])
    if 0 < node.attrs["alpha"] <= 1:
        return lambda x: np.maximum(x, alpha * x)
    return lambda x: choose(x > zero, x, alpha * x)


def _leaky_relu_grad(node: Construction) -> ActivationGradient:
    zero, alpha = _constants(node, 0, node.attrs["alpha"])
    return lambda g, f: choose(f > zero, g, alpha * g)


def _softplus(node: Construction) -> Unary:
    """log(1 + exp(x)), without overflow for large x."""
    (zero,) = _constants(node, 0)
    return lambda x: np.maximum(x, zero) + np.log1p(np.exp(-np.abs(x)))


def _softplus_grad(node: Construction) -> ActivationGradient:
    (one,) = _constants(node, 1)
    return lambda g, f: g / (np.exp(-f) + one)


def _softsign(node: Construction) -> Unary:
    (one,) = _constants(node, 1)
    return lambda x: x / (np.abs(x) + one)


def _softsign_grad(node: Construction) -> ActivationGradient:
    (one,) = _constants(node, 1)
    return lambda g, f: g / np.square(one + np.abs(f))


for _op, _make in {
    "Relu6": _relu6,
    "Elu": _elu,
    "Selu": _selu,
    "LeakyRelu": _leaky_relu,
    "Softplus": _softplus,
    "Softsign": _softsign,
}.items():
    _elementwise(_op, _make)

for _grad_op, _make_grad in {
    "ReluGrad": _relu_grad,
    "Relu6Grad": _relu6_grad,
    "EluGrad": _elu_grad,
    "SeluGrad": _selu_grad,
    "LeakyReluGrad": _leaky_relu_grad,
    "SoftplusGrad": _softplus_grad,
    "SoftsignGrad": _softsign_grad,
}.items():
    _gradient(_grad_op, _make_grad)


@kernel("Relu")
def relu(node: Construction) -> Kernel:
    """max(x, 0); of signed bytes quantised to qint8 as of any other number."""
    return in_float32(rectified, node.output_types[0])
