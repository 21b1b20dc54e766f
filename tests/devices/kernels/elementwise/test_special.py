"""Special functions: known values, the identities that define them, and TensorFlow's values at the edges of domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, special

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import HALF_TYPES, arrays, filled
from tests.devices.kernels.harness import check_shapes, run, shapes

DOUBLE = np.dtype(np.float64)
ONE_VARIABLE = [
    *("Erf", "Erfc", "Lgamma", "Digamma", "Dawsn", "Expint", "Spence", "FresnelSin", "FresnelCos"),
    *("BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"),
    *("BesselK0", "BesselK0e", "BesselK1", "BesselK1e"),
]


@pytest.mark.parametrize("op", [*ONE_VARIABLE, "Erfinv", "Ndtri"])
@given(x=arrays([np.dtype(np.float32)], 0.05, 0.95))
def test_single_precision_agrees_with_double(op: str, x: Array) -> None:
    """Type and shape are kept, for scalars too."""
    np.testing.assert_allclose(check_shapes(op, x), run(op, x.astype(np.float64)), rtol=3e-5, atol=1e-6)
    if x.size:
        run(op, x.reshape(-1)[0])


@pytest.mark.parametrize("op", ["Erf", "Erfc", "Lgamma", "Digamma", "BesselI0e"])
@pytest.mark.parametrize("dtype", HALF_TYPES)
def test_half_types_go_through_single_precision(op: str, dtype: np.dtype[Any]) -> None:
    """The float32 result is rounded once."""
    x = filled(dtype, (20,), 0, 0.1, 3)
    np.testing.assert_array_equal(run(op, x), run(op, x.astype(np.float32)).astype(dtype))


@given(arrays([DOUBLE], -2, 2))
def test_erf_and_its_relatives(x: Array) -> None:
    """erf + erfc = 1, erfinv undoes erf, ndtri undoes the normal distribution function."""
    erf = run("Erf", x)
    np.testing.assert_allclose(erf + run("Erfc", x), 1, rtol=1e-13)
    np.testing.assert_allclose(run("Erfinv", erf), x, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run("Ndtri", special.ndtr(x)), x, rtol=1e-9, atol=1e-9)


@given(arrays([DOUBLE], 0.1, 20))
def test_gamma_recurrences(x: Array) -> None:
    """lgamma(x+1) = lgamma(x) + log x, digamma(x+1) = digamma(x) + 1/x, and polygamma 0 is digamma."""
    np.testing.assert_allclose(run("Lgamma", x + 1), run("Lgamma", x) + np.log(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run("Digamma", x + 1), run("Digamma", x) + 1 / x, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(check_shapes("Polygamma", np.float64(0), x), run("Digamma", x), rtol=1e-12)


@given(st.integers(0, 999))
def test_incomplete_functions_are_distributions(seed: int) -> None:
    """P + Q = 1, I_x(a, b) + I_1-x(b, a) = 1; the first polygamma and zeta agree."""
    a, b = filled(DOUBLE, (5,), seed, 0.1, 30), filled(DOUBLE, (5,), seed + 1, 0.1, 30)
    x = filled(DOUBLE, (5,), seed + 2, 0.01, 0.99)
    np.testing.assert_allclose(check_shapes("Igamma", a, b) + check_shapes("Igammac", a, b), 1, rtol=1e-12)
    np.testing.assert_allclose(check_shapes("Betainc", a, b, x) + run("Betainc", b, a, 1 - x), 1, rtol=1e-9)
    np.testing.assert_allclose(run("Polygamma", np.float64(1), a), check_shapes("Zeta", np.float64(2), a), rtol=1e-12)


@given(st.integers(0, 999), st.floats(0.1, 200), st.floats(0.05, 3))
def test_the_derivative_of_the_incomplete_gamma_function(seed: int, a: float, ratio: float) -> None:
    """A difference quotient of P(a, x) in a, on both sides of x = a + 1; samples move by it over the density."""
    x, step = a * ratio, 1e-4 * a
    # The side that is not close to 1 has the digits.
    name, sign = ("gammainc", 1) if x < a + 1 else ("gammaincc", -1)
    value = getattr(special, name)
    near, far = value(a + step, x) - value(a - step, x), value(a + 2 * step, x) - value(a - 2 * step, x)
    quotient = sign * (8 * near - far) / (12 * step)
    derivative = check_shapes("IgammaGradA", np.float64(a), np.float64(x))
    np.testing.assert_allclose(derivative, quotient, rtol=1e-5, atol=1e-13)
    density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
    if density > 1e-12:
        moved = check_shapes("RandomGammaGrad", np.float64(a), np.float64(x))
        np.testing.assert_allclose(moved, -derivative / density, rtol=1e-7)


def test_fresnel_integrals_are_integrals() -> None:
    """Of the sine and cosine of pi t^2 / 2."""
    for op, function in (("FresnelSin", np.sin), ("FresnelCos", np.cos)):
        area, _ = integrate.quad(lambda t, f=function: f(np.pi * t * t / 2), 0, 1.5)
        np.testing.assert_allclose(run(op, np.array([1.5])), area, rtol=1e-9)


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Digamma", ([0, -1, -0.0],), [np.nan] * 3),
        ("Lgamma", ([0, -1, -np.inf],), [np.inf] * 3),
        ("Expint", ([0, -1, np.inf],), [-np.inf, np.nan, np.nan]),
        ("Erf", ([np.inf, -np.inf],), [1, -1]),
        ("BesselK0", ([0, -1],), [np.inf, np.inf]),
        ("BesselY0", ([0, -1],), [-np.inf, -np.inf]),
        ("Erfinv", ([1, -1, 2],), [np.inf, -np.inf, np.nan]),
        ("Igamma", ([1, 0, -1, 2, 2], [0, 1, 1, -1, np.inf]), [0, np.nan, np.nan, np.nan, 1]),
        ("Igammac", ([1, 0, -1, 2], [0, 1, 1, np.inf]), [1, np.nan, np.nan, 0]),
        ("IgammaGradA", ([1, -1, 2, 2], [0, 1, -1, np.inf]), [0, np.nan, np.nan, 0]),
        ("Zeta", ([1, 0.5, 2, 3], [2, 2, -1, -1]), [np.inf, np.nan, np.inf, np.nan]),
        ("Polygamma", ([0.5, -1, 1, 0], [2, 2, -1, 0]), [np.nan, np.nan, np.inf, np.nan]),
    ],
)
def test_values_at_the_edges(op: str, inputs: tuple[list[float], ...], expected: list[float]) -> None:
    """As TensorFlow gives them at and beyond the edge of the domain."""
    arrays_ = [np.array(values, np.float32) for values in inputs]
    np.testing.assert_array_equal(check_shapes(op, *arrays_), np.array(expected, np.float32))


def test_erf_of_infinity_in_double_precision() -> None:
    """The result is NaN, as TensorFlow's kernel for doubles gives it."""
    np.testing.assert_array_equal(run("Erf", np.array([np.inf, 0, -np.inf])), [np.nan, 0, np.nan])


def test_shapes_of_several_variables() -> None:
    """Two broadcast; Betainc wants one shape or scalars."""
    assert shapes("Igamma", (3, 1), (2,)) == [(3, 2)]
    assert shapes("Betainc", (), (3,), (None,)) == [(3,)]
    with pytest.raises(InvalidArgumentError, match="Dimension 0 in both shapes must be equal"):
        shapes("Betainc", (2,), (3,), ())
    with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
        run("Zeta", np.ones(2), np.ones(3))


def test_incomplete_beta_functions_have_one_shape() -> None:
    """Only scalars are stretched."""
    two, three = np.full(2, 0.5), np.full(3, 0.5)
    assert run("Betainc", two, np.float64(1), np.float64(0.5)).shape == (2,)
    with pytest.raises(InvalidArgumentError, match=r"Shapes of a and x are inconsistent: \[2\] vs. \[3\]"):
        run("Betainc", two, np.float64(1), three)
