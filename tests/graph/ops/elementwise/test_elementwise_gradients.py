"""Slopes of elementwise functions are what their gradients say, once and again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.gradients.numeric import Example, between, check, complex_normal, example, normal


def words(text: str) -> list[str]:
    """Op names."""
    return text.split()


ANYWHERE = words(
    """Neg Exp Expm1 Sin Cos Sinh Cosh Tanh Sigmoid Square Asinh Atan Erf Erfc Softplus Softsign Elu Selu Relu LeakyRelu
    Abs Identity BesselI0 BesselI0e BesselI1 BesselI1e FresnelCos FresnelSin Dawsn"""
)
INSIDE_ONE = words("Asin Acos Atanh Tan Erfinv")
POSITIVE = words(
    """Log Log1p Sqrt Rsqrt Reciprocal Inv Lgamma Digamma Expint Spence BesselJ0 BesselJ1 BesselY0 BesselY1 BesselK0
    BesselK0e BesselK1 BesselK1e Acosh Ndtri"""
)
COMPLEX = words("Neg Exp Expm1 Sin Cos Sinh Cosh Tanh Sigmoid Square Log Log1p Sqrt Rsqrt Reciprocal Tan Conj")
ONCE_ONLY = {"BesselI1", "BesselI1e", "BesselJ1", "Elu", "Selu", "Relu"}  # kinks, or a value at 0 that is set


def at(op: str) -> np.ndarray:
    """Where to take the slope of an op."""
    if op in INSIDE_ONE:
        return between(-0.9, 0.9, 7)
    if op == "Ndtri":
        return between(0.05, 0.95, 7)
    return between(1.2, 3.0, 7) if op in POSITIVE else normal(7)


@pytest.mark.parametrize("op", ANYWHERE + INSIDE_ONE + POSITIVE)
async def test_functions_of_one_number(op: str) -> None:
    """Real arguments, where the function has a slope."""
    await check(lambda b, x: b.op(op, x), at(op), twice=op not in ONCE_ONLY, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("op", COMPLEX)
async def test_functions_of_one_complex_number(op: str) -> None:
    """Complex arguments."""
    await check(lambda b, x: b.op(op, x), complex_normal(5) + 2, twice=True, rtol=2e-5, atol=1e-6)


def gradient_op(op: str) -> Example:
    """An op of (y or x, g) or (g, y or x)."""
    return example(lambda b, y, g: b.op(op, y, g), between(0.2, 0.8, 5), normal(5))


GRADIENT_OPS = words(
    """TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad ReluGrad Relu6Grad LeakyReluGrad EluGrad SeluGrad
    SoftplusGrad SoftsignGrad"""
)


@pytest.mark.parametrize("op", GRADIENT_OPS)
async def test_ops_that_compute_gradients(op: str) -> None:
    """The ops that gradients are made of have gradients themselves."""
    await gradient_op(op).check()


async def test_relu6_is_flat_above_six() -> None:
    """The gradient is 0 outside of [0, 6]."""
    await check(lambda b, x: b.op("Relu6", x), np.array([-1.0, 0.5, 3.0, 5.5, 7.0]), twice=True)


TWO = {
    "Add": (normal(3, 1), normal(1, 4)),
    "AddV2": (normal(3, 4), normal(4)),
    "Sub": (normal(4), normal(3, 1)),
    "Mul": (normal(2, 1, 4), normal(3, 1)),
    "MulNoNan": (normal(3, 4), between(1, 2, 4)),
    "Div": (normal(3, 4), between(1, 2, 4)),
    "RealDiv": (normal(4), between(1, 2, 3, 1)),
    "DivNoNan": (normal(4), between(1, 2, 3, 1)),
    "FloorMod": (between(0.2, 0.8, 4) + 3, between(1.3, 1.45, 3, 1)),
    "Pow": (between(0.5, 2, 3, 4), normal(4)),
    "Maximum": (normal(3, 4), normal(4)),
    "Minimum": (normal(3, 4), normal(4)),
    "SquaredDifference": (normal(3, 4), normal(3, 1)),
    "Atan2": (normal(3, 4), between(1, 2, 4)),
    "Xdivy": (between(1, 2, 3, 1), between(1, 2, 4)),
    "Xlogy": (between(1, 2, 3, 1), between(1, 2, 4)),
    "Xlog1py": (between(1, 2, 3, 1), between(1, 2, 4)),
    "Cross": (normal(4, 3), normal(4, 3, seed=1)),
}


@pytest.mark.parametrize("open_shapes", [False, True])
@pytest.mark.parametrize("op", TWO)
async def test_functions_of_two_numbers(op: str, open_shapes: bool) -> None:
    """The gradient of a stretched input is summed, with known and with unknown shapes."""
    twice = op != "FloorMod"
    await check(lambda b, x, y: b.op(op, x, y), *TWO[op], twice=twice, open_shapes=open_shapes, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "RealDiv", "DivNoNan", "Pow", "Xlogy", "Xdivy", "Xlog1py"])
async def test_functions_of_two_complex_numbers(op: str) -> None:
    """Complex arguments, one of them stretched."""
    await check(lambda b, x, y: b.op(op, x, y), complex_normal(3, 4) + 2, complex_normal(4, seed=5) + 2, rtol=2e-5)


@pytest.mark.parametrize("op", ["Igamma", "Igammac"])
async def test_incomplete_gamma(op: str) -> None:
    """By both arguments."""
    await check(lambda b, a, x: b.op(op, a, x), between(1, 2, 3, 1), between(1, 2, 4), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("op", ["Zeta", "Polygamma"])
async def test_only_the_second_argument_flows_back(op: str) -> None:
    """Orders have no gradient."""
    order = np.array([[2.0], [3.0]])
    await check(lambda b, x, y: b.op(op, x, y), order, between(1.5, 2, 4), flat=[0], rtol=1e-4)


async def test_betainc_flows_back_to_its_upper_end() -> None:
    """Shape parameters have no gradient."""
    xs = between(1, 2, 4), between(1, 2, 4, seed=1), between(0.2, 0.8, 4)
    await check(lambda b, *args: b.op("Betainc", *args), *xs, flat=[0, 1], rtol=1e-4)


@pytest.mark.parametrize("op", ["Real", "Imag", "Angle", "ComplexAbs"])
async def test_parts_of_complex_numbers(op: str) -> None:
    """Real results of complex arguments."""
    await check(lambda b, x: b.op(op, x, Tout="float64"), complex_normal(5), rtol=2e-5)


@pytest.mark.parametrize("open_shapes", [False, True])
async def test_complex_numbers_from_parts(open_shapes: bool) -> None:
    """Both parts may be stretched."""
    xs = normal(3, 1), normal(4)
    await check(lambda b, x, y: b.op("Complex", x, y, Tout="complex128"), *xs, open_shapes=open_shapes)


async def test_clip_by_value() -> None:
    """The value or the bound that was chosen gets the gradient."""
    xs = np.array([[-2.0, 0.1, 0.4], [1.5, -0.3, 0.9]]), np.array(-0.5), np.array(0.6)
    await check(lambda b, *args: b.op("ClipByValue", *args), *xs)


@pytest.mark.parametrize("op", ["Floor", "Ceil", "Rint", "Round"])
async def test_steps_are_flat(op: str) -> None:
    """Step functions have no gradient."""
    await check(lambda b, x: (b.op(op, x), b.op("Neg", x)), normal(4), atol=1e-4)
    await check(lambda b, x: b.op(op, x), normal(4), flat=[0])


async def test_sign_gives_zeros() -> None:
    """Sign has the gradient 0, not none."""
    await check(lambda b, x: b.op("Sign", x), normal(4))


async def test_next_after() -> None:
    """The neighbour of x has the gradient of x."""
    await check(lambda b, x, y: b.op("NextAfter", x, y), normal(3, 4), normal(4))


@pytest.mark.parametrize(("open_shapes", "then"), [(False, (3, 4)), (True, (3, 1)), (False, ())])
async def test_select(open_shapes: bool, then: tuple[int, ...]) -> None:
    """The chosen input gets the gradient; SelectV2 stretches."""
    condition = np.array([True, False, True, True])
    build = lambda b, x, y: b.op("SelectV2", b.constant(condition), x, y)  # noqa: E731 - read once, in the next line
    await check(build, normal(*then), normal(3, 4), open_shapes=open_shapes, twice=True)
    await check(lambda b, x, y: b.op("Select", b.constant(condition), x, y), normal(4, 2), normal(4, 2, seed=2))


async def test_casts() -> None:
    """Between floating types and to complex ones."""
    await check(
        lambda b, x: b.op("Cast", b.op("Cast", x, DstT="complex128"), DstT="complex64"), normal(3), step=1e-2, rtol=1e-4
    )
    await check(lambda b, x: b.op("Cast", b.op("Cast", x, DstT="int32"), DstT="float64"), normal(3), flat=[0])
