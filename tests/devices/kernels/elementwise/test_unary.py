"""Elementwise ops on one tensor agree with the same function in double precision and keep type and shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError, UnimplementedError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.draws import (
    COMPLEX_TYPES,
    FLOAT_TYPES,
    INTEGER_TYPES,
    arrays,
    filled,
    tolerance,
)
from tests.devices.kernels.harness import check_shapes, run

REFERENCES: dict[str, Callable[[Array], Array]] = {
    "Abs": np.abs,
    "Neg": np.negative,
    "Sign": np.sign,
    "Square": np.square,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Sin": np.sin,
    "Cos": np.cos,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Rint": np.rint,
    "Round": np.rint,
    "Reciprocal": lambda x: 1 / x,
    "Inv": lambda x: 1 / x,
    "IsNan": np.isnan,
    "IsInf": np.isinf,
    "IsFinite": np.isfinite,
}
ON_UNIT_INTERVAL = {"Asin": np.arcsin, "Acos": np.arccos, "Atanh": np.arctanh, "Tan": np.tan}


@pytest.mark.parametrize("op", REFERENCES)
@given(x=arrays(FLOAT_TYPES))
def test_floats_agree_with_double_precision(op: str, x: Array) -> None:
    """For every floating type, rounded once or a few times."""
    with np.errstate(all="ignore"):
        expected = REFERENCES[op](x.astype(np.float64))
    rtol = tolerance(x.dtype)
    actual = np.asarray(check_shapes(op, x)).astype(np.float64)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("op", ON_UNIT_INTERVAL)
@given(x=arrays(FLOAT_TYPES, -0.9, 0.9))
def test_inverse_functions_on_their_domain(op: str, x: Array) -> None:
    """Where their arguments lie within (-1, 1)."""
    rtol = tolerance(x.dtype)
    expected = ON_UNIT_INTERVAL[op](x.astype(np.float64))
    np.testing.assert_allclose(np.asarray(check_shapes(op, x)).astype(np.float64), expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("op", ["Neg", "Square", "Sqrt", "Exp", "Log", "Sin", "Tanh", "Sigmoid", "Rsqrt", "Conj"])
@given(x=arrays(COMPLEX_TYPES))
def test_complex_types_are_kept(op: str, x: Array) -> None:
    """A scalar of the array gives what the array gives there."""
    whole = np.asarray(check_shapes(op, x))
    for index in list(np.ndindex(x.shape))[:3]:
        np.testing.assert_allclose(run(op, x[index]), whole[index], rtol=1e-4)


@given(arrays(INTEGER_TYPES, -128, 127))
def test_integer_arithmetic_wraps(x: Array) -> None:
    """As modulo arithmetic in the width of the type: the square, the complement, the count of ones."""
    bits = x.dtype.itemsize * 8
    exact = [int(value) for value in x.reshape(-1)]
    wrapped = [int(value) % 2**bits for value in np.asarray(run("Square", x)).reshape(-1)]
    assert wrapped == [value * value % 2**bits for value in exact]
    assert [int(value) for value in np.asarray(run("Invert", x)).reshape(-1) if x.dtype.kind == "i"] == [
        ~value for value in exact if x.dtype.kind == "i"
    ]
    ones = [int(count) for count in np.asarray(check_shapes("PopulationCount", x)).reshape(-1)]
    assert ones == [(value % 2**bits).bit_count() for value in exact]


def test_the_least_integer_has_no_negative() -> None:
    """It is its own negative and its own absolute value."""
    least = np.array([-128], np.int8)
    assert run("Neg", least)[0] == run("Abs", least)[0] == -128


FORWARD = {
    "SqrtGrad": ("Sqrt", 0.5, 3),
    "RsqrtGrad": ("Rsqrt", 0.5, 3),
    "SigmoidGrad": ("Sigmoid", -3, 3),
    "TanhGrad": ("Tanh", -2, 2),
    "InvGrad": ("Inv", 0.5, 3),
    "ReciprocalGrad": ("Reciprocal", 0.5, 3),
}


@pytest.mark.parametrize("op", FORWARD)
@given(seed=st.integers(0, 999))
def test_gradients_are_difference_quotients(op: str, seed: int) -> None:
    """dy times the slope of the forward op, given its output."""
    forward, low, high = FORWARD[op]
    x, dy = filled(np.dtype(np.float64), (5,), seed, low, high), filled(np.dtype(np.float64), (5,), seed + 1)
    slope = (run(forward, x + 1e-6) - run(forward, x - 1e-6)) / 2e-6
    np.testing.assert_allclose(check_shapes(op, run(forward, x), dy), dy * slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("op", ["SqrtGrad", "TanhGrad"])
@pytest.mark.parametrize("dtype", FLOAT_TYPES + COMPLEX_TYPES)
def test_gradients_keep_every_type(op: str, dtype: np.dtype[Any]) -> None:
    """On arrays and on scalars."""
    y = filled(dtype, (2, 3), 1, 0.5, 0.9)
    whole = run(op, y, y)
    np.testing.assert_allclose(complex(run(op, y[0, 0], y[0, 0])), complex(whole[0, 0]), rtol=1e-6)


@given(arrays(COMPLEX_TYPES))
def test_a_complex_number_is_its_parts(z: Array) -> None:
    """Complex(Real, Imag) is the identity, and so is magnitude times the unit number of the angle."""
    part = DataType.FLOAT if z.dtype == np.complex64 else DataType.DOUBLE
    whole = DataType.COMPLEX64 if z.dtype == np.complex64 else DataType.COMPLEX128
    real, imag = check_shapes("Real", z, Tout=part), check_shapes("Imag", z, Tout=part)
    np.testing.assert_array_equal(check_shapes("Complex", real, imag, Tout=whole), z)
    polar = check_shapes("ComplexAbs", z, Tout=part) * np.exp(1j * run("Angle", z, Tout=part))
    np.testing.assert_allclose(polar, z, rtol=1e-5, atol=1e-5)


def test_an_infinite_part_stays_beside_a_finite_one() -> None:
    """It does not turn the other part into NaN."""
    z = run("Complex", np.float32(1), np.float32(np.inf), Tout=DataType.COMPLEX64)
    assert (z.real, z.imag) == (1, np.inf)


def test_values_at_the_edges() -> None:
    """Infinities where a limit is infinite, NaN beyond the domain, halves to even."""
    edge = np.array([0, -1, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(run("Rsqrt", edge), [np.inf, np.nan, 0, np.nan])
    np.testing.assert_array_equal(run("Log", edge), [-np.inf, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(run("Sign", np.array([np.nan, -0.0, -3], np.float32)), [np.nan, 0, -1])
    np.testing.assert_array_equal(run("Sigmoid", np.array([-200, 200, -np.inf], np.float32)), [0, 1, 0])
    np.testing.assert_array_equal(run("Round", np.array([0.5, 1.5, -2.5], np.float32)), [0, 2, -2])
    np.testing.assert_array_equal(run("Round", np.array([3, -4], np.int32)), [0, 0])  # as TensorFlow has it


@given(arrays([*FLOAT_TYPES, *COMPLEX_TYPES, *INTEGER_TYPES, np.dtype(np.bool_)]))
def test_zeros_and_ones_like(x: Array) -> None:
    """Same shape and type, whatever the type."""
    assert not np.asarray(check_shapes("ZerosLike", x)).any()
    assert (np.asarray(check_shapes("OnesLike", x)) == 1).all()


def test_zeros_of_strings_are_empty_and_variants_are_refused() -> None:
    """A tensor of text has empty text as its zero."""
    assert run("ZerosLike", np.array([b"a", b"bc"], object)).tolist() == [b"", b""]
    assert run("ZerosLike", np.array(b"a", object)).shape == ()
    with pytest.raises(UnimplementedError, match="variant"):
        run("ZerosLike", np.array([b""], object), T=DataType.VARIANT)


def test_logical_not() -> None:
    """Of arrays and of scalars, always a numpy bool."""
    np.testing.assert_array_equal(check_shapes("LogicalNot", np.array([True, False])), [False, True])
    assert not run("LogicalNot", np.bool_(True))


@pytest.mark.parametrize("op", ["SqrtGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad", "InvGrad", "ReciprocalGrad"])
def test_gradients_pair_elements_in_order(op: str) -> None:
    """Of as many elements, in the shape of the first tensor; they do not broadcast."""
    y, dy = np.array([[0.2, 0.3]]), np.array([2.0, 3.0])
    np.testing.assert_array_equal(run(op, y, dy), run(op, y, dy[None]))
    with pytest.raises(InvalidArgumentError, match="must have same number of elements, got 2 and 1"):
        run(op, y, np.float64(1))


@pytest.mark.parametrize(
    ("op", "few", "eight"),
    [
        (
            "SigmoidGrad",
            [0x3E02557C, 0x3E8DE3BD, 0x3ED70A3E],
            [0x3E02557B, 0x3E8DE3BD, 0x3ED70A3E, 0x3F09624F, 0x3F1CC471, 0x3F228E11, 0x3F180E66, 0x3EF5C28F],
        ),
        (
            "RsqrtGrad",
            [0xBA395D23, 0xBBE305FC, 0xBCDD2F1C],
            [0xBA395D23, 0xBBE305FC, 0xBCDD2F1C, 0xBD928B00, 0xBE1CC471, 0xBE924CAB, 0xBEF85BC7, 0xBF449BA7],
        ),
    ],
)
def test_gradients_have_tensorflows_bits(op: str, few: list[int], eight: list[int]) -> None:
    """Which depend on whether the numbers fill a vector register."""
    y = (np.arange(1, 9) / np.float32(10)).astype(np.float32)
    dy = np.sqrt(np.arange(2, 10, dtype=np.float64)).astype(np.float32)
    assert run(op, y, dy).view(np.uint32).tolist() == eight
    assert run(op, y[:3], dy[:3]).view(np.uint32).tolist() == few
