"""Division and remainder: rounded as the op declares, refused where the divisor is zero."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given

from partita.errors import InternalError, InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.draws import INTEGER_TYPES, pairs
from tests.devices.kernels.harness import run


@given(pairs(INTEGER_TYPES, -128, 127))
def test_integer_division_rounds_as_declared(operands: tuple[Array, Array]) -> None:
    """Floor and truncated quotients, their remainders, and x == q * y + r, for every integer type."""
    x, y = operands
    assume(y.all())
    floor, rest = run("FloorDiv", x, y), run("FloorMod", x, y)
    cut = run("TruncateDiv", x, y)
    np.testing.assert_array_equal(run("Div", x, y), cut)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(floor * y + rest, np.broadcast_to(x, np.shape(rest)))
    wide_x, wide_y = np.broadcast_arrays(x, y)
    for a, b, down, towards in zip(wide_x.flat, wide_y.flat, np.ravel(floor), np.ravel(cut), strict=True):
        if (int(a), int(b)) != (np.iinfo(x.dtype).min, -1):  # this quotient does not fit and wraps
            assert int(down) == int(a) // int(b)
            assert int(towards) == math.trunc(int(a) / int(b))


@pytest.mark.parametrize("op", ["FloorDiv", "Div", "FloorMod", "Mod"])
def test_integers_do_not_divide_by_zero(op: str) -> None:
    """Unless nothing is divided at all."""
    with pytest.raises(InvalidArgumentError, match="Integer division by zero"):
        run(op, np.array([1, 2], np.int32), np.array([1, 0], np.int32))
    with pytest.raises(InvalidArgumentError, match="Integer division by zero"):
        run(op, np.int32(1), np.int32(0))
    assert run(op, np.zeros(0, np.int32), np.int32(0)).shape == (0,)


def test_truncated_division_by_zero_is_what_tensorflow_makes_of_it() -> None:
    """An internal error there, and so here."""
    with pytest.raises(InternalError, match="Unexpected error in binary operator"):
        run("TruncateDiv", np.int32(1), np.int32(0))


def test_float_division_follows_ieee() -> None:
    """Infinite and NaN quotients; remainders take the divisor's sign, or the dividend's if truncated."""
    x = np.array([7, -7, np.inf, -5, 0], np.float32)
    y = np.array([-3, 3, 2, np.inf, 0], np.float32)
    np.testing.assert_array_equal(run("FloorDiv", x, y), [-3, -3, np.inf, 0, np.nan])
    np.testing.assert_array_equal(run("FloorMod", x, y), [-2, 2, np.nan, np.inf, np.nan])
    np.testing.assert_array_equal(run("TruncateMod", x, y), [1, -1, np.nan, -5, np.nan])
