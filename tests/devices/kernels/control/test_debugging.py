"""Numbers about tensors for debuggers are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partita.errors import UnimplementedError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

ODD = np.array([[1, -2, 0], [np.nan, np.inf, -np.inf]], np.float32)
WHOLE = np.array([1, -2, 3])
NARROW = np.full((1, 2, 3, 1, 1, 2, 3), 2, np.float32)


@pytest.mark.parametrize("op", ["DebugGradientIdentity", "DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"])
def test_tensors_pass(op: str) -> None:
    """Unchanged, whatever their type."""
    for x in (ODD, np.array([b"a"], object)):
        assert check_shapes(op, x) is x


def test_counts_of_nan() -> None:
    """No integer is one."""
    assert [check_shapes("DebugNanCount", x).tolist() for x in (ODD, WHOLE, np.zeros((0, 2)))] == [[1], [0], [0]]


def summary(x: Array, **attrs: float) -> list[float]:
    result: list[float] = check_shapes("DebugNumericSummary", x, **attrs).tolist()
    return result


def test_summaries() -> None:
    """Counts by sort, then the least, the greatest, mean and variance of the finite ones, then type and shape."""
    finite = [-2, 1, pytest.approx(-1 / 3), pytest.approx(14 / 9)]
    assert summary(ODD) == [1, 6, 1, 1, 1, 1, 1, 1, *finite, 1, 2, 2, 3]
    assert summary(ODD, lower_bound=-1.0, upper_bound=0.5) == [1, 6, 1, 2, 0, 1, 0, 2, *finite, 1, 2, 2, 3]
    assert summary(np.array([True, False])) == [1, 2, 0, 0, 0, 1, 1, 0, 0, 1, 0.5, 0.25, 10, 1, 2]
    empty = summary(np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(empty, [1, *[0] * 7, np.inf, -np.inf, np.nan, np.nan, 1, 2, 0, 2])


@pytest.mark.parametrize(
    ("mode", "x", "expected"),
    [
        (2, ODD, [7, 1]),
        (2, WHOLE, [7, 0]),
        (3, ODD, [7, 6, 1, 1, 1]),
        (4, ODD, [7, -1, 1, 2, 6, 1, 1, 1, 1, 1, 1]),
        (4, WHOLE.astype(np.float64), [7, -1, 2, 1, 3, 0, 0, 0, 1, 0, 2]),
        (5, ODD, [7, 1, 2, 6, 2, 3, 0, 0, 0, 0]),
        (5, NARROW, [7, 1, 7, 36, 2, 3, 1, 1, 2, 3]),
        (8, ODD, [-np.inf, np.inf, np.nan]),
        (8, WHOLE, [0, 0, 0]),
    ],
)
def test_summaries_by_mode(mode: int, x: Array, expected: list[Any]) -> None:
    """Behind the id of the tensor what the mode asks for."""
    got = check_shapes("DebugNumericSummaryV2", x, tensor_debug_mode=mode, tensor_id=7)
    np.testing.assert_array_equal(got, expected)


def test_an_unknown_mode_is_refused() -> None:
    """In TensorFlow's words."""
    with pytest.raises(UnimplementedError, match="Unimplemented tensor debug mode: 6"):
        run("DebugNumericSummaryV2", ODD, tensor_debug_mode=6, tensor_id=7)
