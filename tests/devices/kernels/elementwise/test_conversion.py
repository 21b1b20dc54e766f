"""Casts convert as TensorFlow's do on an x86 CPU: exactly where the value fits, and by its rules where not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import UnimplementedError
from partita.graph.dtypes import Array, DataType, from_numpy
from tests.devices.kernels.draws import INTEGER_TYPES, NUMBERS, arrays
from tests.devices.kernels.harness import check_shapes, run

BOOL = np.dtype(np.bool_)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@given(arrays([*NUMBERS, BOOL], 0, 100), st.sampled_from([*NUMBERS, BOOL]))
def test_casts_convert_values_that_fit(x: Array, target: np.dtype[Any]) -> None:
    """To the nearest value, or towards zero for integers; of a complex number the real part stays."""
    wide = x.real if x.dtype.kind == "c" and target.kind != "c" else x
    actual = check_shapes("Cast", x, DstT=from_numpy(target))
    np.testing.assert_array_equal(actual, wide.astype(target))
    if x.size:
        run("Cast", x.reshape(-1)[0], DstT=from_numpy(target))


@given(arrays(INTEGER_TYPES, -128, 127), st.sampled_from(INTEGER_TYPES))
def test_integer_casts_wrap(x: Array, target: np.dtype[Any]) -> None:
    """Modulo the width of the target."""
    cast = check_shapes("_HostCast", x, DstT=from_numpy(target))
    bits = target.itemsize * 8
    assert [int(v) % 2**bits for v in np.ravel(cast)] == [int(v) % 2**bits for v in x.reshape(-1)]


@given(st.floats(-1e4, 1e4, width=32), st.sampled_from([np.dtype(np.float16), BFLOAT16]))
def test_truncating_casts_never_grow(value: float, target: np.dtype[Any]) -> None:
    """The magnitude is the greatest of the target type not above the value's, within its normal range."""
    x = np.float32(value)
    cut = run("Cast", x, DstT=from_numpy(target), Truncate=True)
    if abs(value) > 1e-3:
        assert abs(float(cut)) <= abs(value)
        assert abs(float(np.nextafter(cut, target.type(np.inf if value > 0 else -np.inf)))) > abs(value)


def test_truncating_casts_keep_special_values() -> None:
    """NaN stays NaN, infinities stay; to a wider type nothing is cut."""
    x = np.array([np.nan, np.inf, -np.inf, 1 + 2**-8], np.float32)
    cut = run("Cast", x, DstT=DataType.BFLOAT16, Truncate=True)
    np.testing.assert_array_equal(cut.astype(np.float32), [np.nan, np.inf, -np.inf, 1])
    np.testing.assert_array_equal(run("Cast", x, DstT=DataType.DOUBLE, Truncate=True), x.astype(np.float64))


def test_text_is_not_cast_to_numbers() -> None:
    """That is what StringToNumber is for."""
    with pytest.raises(UnimplementedError, match="Cast string to float is not supported"):
        run("Cast", np.array([b"1"], object), DstT=DataType.FLOAT)


OUT_OF_RANGE = [-1.5, 300.0, -300.0, 2.0**31, -(2.0**40), np.inf, np.nan]


@pytest.mark.parametrize(
    ("source", "target", "whole", "single"),
    [
        (DataType.FLOAT, DataType.UINT8, [0, 255, 0, 0, 0, 0, 0], [255, 44, 212, 0, 0, 0, 0]),
        (DataType.FLOAT, DataType.INT8, [-1, 127, -128, -128, -128, -128, -128], [-1, 44, -44, 0, 0, 0, 0]),
        (DataType.FLOAT, DataType.UINT16, [0, 300, 0, 0, 0, 0, 0], [65535, 300, 65236, 0, 0, 0, 0]),
        (DataType.DOUBLE, DataType.INT16, [-1, 300, -300, *4 * [-(2**15)]], [-1, 300, -300, 0, 0, 0, 0]),
        (
            DataType.FLOAT,
            DataType.UINT32,
            [2**32 - 1, 300, 2**32 - 300, 2**31, 2**31, 2**31, 2**31],
            [2**32 - 1, 300, 2**32 - 300, 2**31, 0, 0, 0],
        ),
        (
            DataType.DOUBLE,
            DataType.UINT64,
            [2**64 - 1, 300, 2**64 - 300, 2**31, 2**64 - 2**40, 2**63, 2**63],
            [2**64 - 1, 300, 2**64 - 300, 2**31, 2**64 - 2**40, 2**63, 2**63],
        ),
    ],
)
def test_floats_out_of_range(source: DataType, target: DataType, whole: list[int], single: list[int]) -> None:
    """The elements of whole vector registers saturate, those left over wrap: TensorFlow's own answers."""
    values = np.array(OUT_OF_RANGE, np.float32 if source is DataType.FLOAT else np.float64)
    for value, in_register, alone in zip(values, whole, single, strict=True):
        assert run("Cast", value, DstT=target) == alone
        cast = run("Cast", np.full(33, value), DstT=target)
        assert cast[:32].tolist() == [in_register] * 32
        assert cast[32] == alone


def test_doubles_become_bytes_by_way_of_signed_words() -> None:
    """So that 32768 and more saturate to 0 in a whole register, where floats saturate to 255."""
    large = np.full(32, 40000.0)
    assert set(run("Cast", large, DstT=DataType.UINT8).tolist()) == {0}
    assert set(run("Cast", large.astype(np.float32), DstT=DataType.UINT8).tolist()) == {255}


@pytest.mark.parametrize(
    ("source", "target"),
    [(np.int32, DataType.FLOAT8_E5M2), (np.bool_, DataType.INT4), (ml_dtypes.int4, DataType.FLOAT)],
)
def test_some_pairs_of_types_have_no_cast(source: Any, target: DataType) -> None:
    """Eight-bit floats are made of floats, four-bit integers of integers."""
    with pytest.raises(UnimplementedError, match="is not supported"):
        run("Cast", np.zeros(2, source), DstT=target)


def test_four_bit_integers_wrap() -> None:
    """Also into each other, for which numpy has no conversion."""
    x = np.array([-8, -1, 0, 7], ml_dtypes.int4)
    assert run("Cast", x, DstT=DataType.UINT4).astype(int).tolist() == [8, 15, 0, 7]
