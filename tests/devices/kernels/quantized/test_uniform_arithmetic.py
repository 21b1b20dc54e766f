"""Arithmetic on uniformly quantised tensors gives TensorFlow's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array, DataType
from tests.devices.kernels.harness import check_shapes, run

LIMITS: dict[str, Any] = {"min_val": -(2**31), "max_val": 2**31 - 1}
LEFT = np.array([[86, -62, -101], [-52, -23, 80]], np.int8)
RIGHT = np.array([[-13, -105, -43, 25], [80, 58, 126, -80], [97, -114, 14, -58]], np.int8)
NUMBERS = np.array([[-561, 266, 869], [934, 735, 366]], np.int32)
ROW = np.array([-240, -217, -921], np.int32)


def attrs(**axes: int) -> dict[str, Any]:
    """Attrs of operands: `lhs=-1` is that the left one has one scale."""
    return {f"{name}_quantization_{key}": value for name, axis in axes.items() for key, value in
            {"axis": axis, **LIMITS}.items()}  # fmt: skip


def quantisation(*pairs: Any) -> list[Array]:
    """Scales and zero points in turn."""
    return [np.asarray(pair, (np.float32, np.int32)[i % 2]) for i, pair in enumerate(pairs)]


def dot(*pairs: Any, rhs: int = -1, output: int = -1) -> Any:
    types: dict[str, Any] = {"Tin": DataType.QINT8, "Tout": DataType.QINT32}
    settings = attrs(lhs=-1, rhs=rhs, output=output)
    return check_shapes("UniformQuantizedDot", LEFT, RIGHT, *quantisation(*pairs), **types, **settings).tolist()


def test_products_of_matrices() -> None:
    """One scale, a scale for each column of the right matrix, and for each of the result too; ties upwards."""
    assert dot(0.5, 3, 0.25, -2, 0.01, 5) == [[-206733, -10008, -167333, 164193], [76205, -56483, 1993, -47108]]
    columns = [0.25, 0.5, 0.1, 0.2], [-2, 0, 1, 2]
    expected = [[-206733, -15720, -65640, 134795], [76205, -112770, 860, -37525]]
    assert dot(0.5, 3, *columns, 0.01, 5, rhs=1) == expected
    expected = [[-206733, -7857, -21875, 33706], [76205, -56382, 292, -9375]]
    assert dot(0.5, 3, *columns, [0.01, 0.02, 0.03, 0.04], [5, 6, 7, 8], rhs=1, output=1) == expected


def test_products_of_floats_with_integers() -> None:
    """The floats of each row become bytes first, in a range with zero."""
    x = np.array([[-0.55382282, 0.97756743, -0.31055656], [-0.3288239, -0.79214674, 0.45495808]], np.float32)
    types: dict[str, Any] = {"Tlhs": DataType.FLOAT, "Trhs": DataType.QINT8, "Tout": DataType.FLOAT}
    one = check_shapes("UniformQuantizedDotHybrid", x, RIGHT, *quantisation(0.25, -2), **types, **attrs(rhs=-1))
    np.testing.assert_allclose(one[0], [13.85758, 37.654182, 35.738445, -18.445745], rtol=1e-5)
    positive = np.array([[1, 2, 3.5], [0, 0, 0]], np.float32)
    one = run("UniformQuantizedDotHybrid", positive, RIGHT, *quantisation(0.25, -2), **types, **attrs(rhs=-1))
    np.testing.assert_allclose(one, [[124.950005, -93.74167, 67.85539, -81.31323], [0.0] * 4], rtol=1e-5)
    columns = quantisation([0.25, 0.5, 0.1, 0.2], [-2, 0, 1, 2])
    each = run("UniformQuantizedDotHybrid", x, RIGHT, *columns, **types, **attrs(rhs=1))
    np.testing.assert_allclose(each[1], [-4.0836568, -31.698471, -7.8704543, 6.0281625], rtol=1e-5)


def add(x: Array, y: Array, *pairs: Any, axes: int = -1, right: int = -1) -> Any:
    settings = attrs(lhs=axes, rhs=right, output=axes)
    return check_shapes("UniformQuantizedAdd", x, y, *quantisation(*pairs), T=DataType.QINT32, **settings).tolist()


def test_sums() -> None:
    """Each operand is rounded to the result's scale by itself; shapes broadcast, with scales for columns as well."""
    expected = [[-3408, 785, 2040], [4067, 3130, -475]]
    assert add(NUMBERS, ROW, 0.5, 3, 0.25, -2, 0.1, 7) == expected
    assert add(NUMBERS, NUMBERS * 3 + 1, 0.5, 3, 0.37, -2, 0.1, 7)[0] == [-9029, 4286, 13994]
    assert add(NUMBERS, np.array(7, np.int32), 0.5, 3, 0.25, -2, 0.1, 7)[1] == [4684, 3689, 1844]
    pairs = [0.5, 0.25, 0.1], [3, 1, 2], [0.25, 0.1, 0.2], [-2, 0, 1], [0.1, 0.2, 0.3], [7, 8, 9]
    assert add(NUMBERS, ROW, *pairs, axes=1, right=0) == [[-3408, 231, -317], [4067, 817, -485]]


def clip(low: Any, high: Any, *pairs: Any, axis: int = -1) -> Any:
    settings: dict[str, Any] = {
        "quantization_axis": axis,
        **{f"quantization_{key}": value for key, value in LIMITS.items()},
    }
    ends = np.array(low, np.int32), np.array(high, np.int32)
    return check_shapes(
        "UniformQuantizedClipByValue", NUMBERS, *ends, *quantisation(*pairs), T=DataType.QINT32, **settings
    ).tolist()  # fmt: skip


def test_limits() -> None:
    """Integers of the same scale; where the lower one is above the upper one, that one holds."""
    assert clip(-100, 200, 0.5, 0) == [[-100, 200, 200], [200, 200, 200]]
    assert clip(200, -100, 0.5, 0) == [[-100] * 3] * 2
    assert clip([-100, 0, 50], [200, 100, 60], [0.5] * 3, [0] * 3, axis=1) == [[-100, 100, 60], [200, 100, 60]]


def test_what_is_refused() -> None:
    """In TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=r"rhs_quantization_axis Attr must be 1 \(per-channel\) or -1"):
        dot(0.5, 3, [0.1] * 3, [0] * 3, 0.1, 5, rhs=0)
    with pytest.raises(InvalidArgumentError, match="If rhs is per-tensor quantized, output must be also per-tensor"):
        dot(0.5, 3, 0.1, 0, [0.1] * 4, [5] * 4, output=1)
    with pytest.raises(InvalidArgumentError, match=r"Given min of shape \[1\] and scales/zero_points of shape \[\]"):
        clip([-100], [200], 0.5, 0)
    with pytest.raises(InvalidArgumentError, match=r"given scales shape \[3\] and zero_points shape \[2\]"):
        clip([1] * 3, [2] * 3, [0.5] * 3, [0] * 2, axis=1)
