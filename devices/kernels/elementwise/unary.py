"""Kernels of one tensor, element by element: arithmetic, roots, exponentials, trigonometry, rounding, complex parts.

Where numpy or Python has the function, it is the kernel itself; formulas with several roundings use float32 for the
half types. `operator.neg` and the like are preferred to `np.negative`: they are ten times faster on numpy scalars and
equal on arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError, UnimplementedError
from ....graph.dtypes import Array, DataType, numpy_dtype
from ..carried import zeros_like
from ..half_types import in_float32, is_half
from ..registry import Construction, Kernel, kernel, simple
from .broadcasting import broadcasting_binary
from .tanh import tanh_float32

_UFUNCS: dict[str, Callable[..., Any]] = {
    "Abs": operator.abs,
    "ComplexAbs": operator.abs,
    "Neg": operator.neg,
    "Invert": operator.invert,
    "LogicalNot": operator.invert,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Rint": np.rint,
    "Inv": np.reciprocal,
    "Reciprocal": np.reciprocal,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
    "Conj": np.conjugate,
    "Real": operator.attrgetter("real"),
    "Imag": operator.attrgetter("imag"),
}
for _op, _ufunc in _UFUNCS.items():
    simple(_op, _ufunc)


def _square(x: Array) -> Any:
    return x * x


def _angle(x: Array) -> Any:
    return np.arctan2(x.imag, x.real)


def _population_count(x: Array) -> Any:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}"))  # numpy would count the bits of |x|


simple("Square", _square)
simple("Angle", _angle)
simple("PopulationCount", _population_count)


@kernel("Round")
def round_half_even(node: Construction) -> Kernel:
    """The nearest whole number, halves to the even one.

    Integers become zeros, as in TensorFlow 2.21, whose CPU kernels do this (`tf.round` never calls them).
    """
    return np.zeros_like if numpy_dtype(node.output_types[0]).kind in "iu" else np.rint


@kernel("Rsqrt")
def rsqrt(node: Construction) -> Kernel:
    """1 / sqrt(x): infinite at 0, NaN below."""
    return in_float32(lambda x: 1 / np.sqrt(x), node.output_types[0])


@kernel("Sigmoid")
def sigmoid(node: Construction) -> Kernel:
    """1 / (1 + exp(-x))."""
    one = _one(node)

    def run(x: Array) -> Any:
        if not x.ndim:
            return 1 / (1 + np.exp(-x))
        result = np.negative(x)
        np.exp(result, result)
        np.add(result, one, result)
        return np.divide(one, result, result)

    return in_float32(run, node.output_types[0])


def _one(node: Construction) -> Array:
    """1 in the type in which a node computes; numpy takes half as long to add it as to add a Python number."""
    dtype = numpy_dtype(node.output_types[0])
    return np.ones((), np.float32 if is_half(dtype) else dtype)


def _sigmoid_grad(one: Array) -> Kernel:
    """In TensorFlow's order of factors, which is another one for numbers that do not fill a register of 32 bytes."""
    return lambda y, dy: (one - y) * y * dy if y.nbytes >= 32 else dy * y * (one - y)


_GRADIENTS: dict[str, Callable[[Array], Kernel]] = {
    # 1 -> op(y, dy), y being the forward op's output
    "SqrtGrad": lambda one: lambda y, dy: dy * 0.5 / y,
    "RsqrtGrad": lambda one: lambda y, dy: dy * y * -0.5 * (y * y),
    "SigmoidGrad": _sigmoid_grad,
    "TanhGrad": lambda one: lambda y, dy: dy * (one - y * y),
    "InvGrad": lambda one: lambda y, dy: -dy * (y * y),
    "ReciprocalGrad": lambda one: lambda y, dy: -dy * (y * y),
}


@kernel(*_GRADIENTS)
def gradient(node: Construction) -> Kernel:
    """dy times the derivative of the forward op, written in terms of its output y.

    A complex y is conjugated, except for two ops where TensorFlow leaves that to the builder of the graph.
    """
    formula = _GRADIENTS[node.op](_one(node))
    if numpy_dtype(node.output_types[0]).kind == "c" and node.op not in ("SigmoidGrad", "TanhGrad"):
        return _of_one_size(lambda y, dy: formula(np.conjugate(y), dy))
    return _of_one_size(in_float32(formula, node.output_types[0]))


def _of_one_size(formula: Kernel) -> Kernel:
    """`formula` of two tensors that must have as many elements; the result has the shape of the first."""

    def checked(y: Array, dy: Array) -> Any:
        if y.shape != dy.shape:
            if y.size != dy.size:
                raise InvalidArgumentError(
                    f"The two arguments to a cwise op must have same number of elements, got {y.size} and {dy.size}"
                )
            dy = dy.reshape(y.shape)
        return formula(y, dy)

    return checked


@kernel("ZerosLike", "OnesLike")
def filled_like(node: Construction) -> Kernel:
    """Zeros (empty strings) or ones in the shape of the input."""
    declared = node.output_types[0]
    if declared is DataType.VARIANT and node.op == "ZerosLike":
        return lambda x: zeros_like(x, DataType.VARIANT)
    if declared in (DataType.VARIANT, DataType.RESOURCE):
        raise UnimplementedError(f"{node.op} of a {declared.name.lower()} tensor has no meaning here; use numbers")
    dtype = numpy_dtype(declared)
    if declared is DataType.STRING:
        return lambda x: np.full(x.shape, b"", object)
    scalar, filled = dtype.type(node.op == "OnesLike"), np.ones if node.op == "OnesLike" else np.zeros
    return lambda x: filled(x.shape, dtype) if x.ndim else scalar


@kernel("Complex")
def complex_number(node: Construction) -> Kernel:
    """Joins real and imaginary parts, which broadcast."""
    dtype = numpy_dtype(node.output_types[0])

    def join(real: Array, imag: Array) -> Array:
        result = np.empty(np.broadcast(real, imag).shape, dtype)
        result.real = real  # not real + 1j * imag: that makes NaN of an infinite part
        result.imag = imag
        return result

    return broadcasting_binary(join)


@kernel("Tanh")
def tanh(node: Construction) -> Kernel:
    """The hyperbolic tangent; of the half types that of float32, rounded, which is numpy's own way."""
    return tanh_float32 if numpy_dtype(node.output_types[0]) == np.float32 else np.tanh
