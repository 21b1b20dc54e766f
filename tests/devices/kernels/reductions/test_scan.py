"""Scans along one axis are running totals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from tests.devices.kernels.draws import FLOAT_TYPES, NUMBERS, filled, tolerance
from tests.devices.kernels.harness import check_shapes, run


@given(st.sampled_from(NUMBERS), st.integers(0, 99), st.integers(-2, 1), st.booleans(), st.booleans())
def test_scans_are_running_totals(dtype: np.dtype[Any], seed: int, axis: int, exclusive: bool, reverse: bool) -> None:
    """Inclusive from the front is numpy's; reverse flips before and after, exclusive leaves out the element itself."""
    x = filled(dtype, (3, 4), seed, 1, 2)
    for op, ufunc in (("Cumsum", np.add), ("Cumprod", np.multiply)):
        total = check_shapes(op, x, np.int32(axis), exclusive=exclusive, reverse=reverse)
        towards = np.flip(x, axis) if reverse else x
        inclusive = ufunc.accumulate(towards, axis, dtype)
        total = np.flip(total, axis) if reverse else total
        if exclusive:
            total = ufunc(total, towards)
        rtol = tolerance(dtype) * 4
        np.testing.assert_allclose(total.astype(np.complex128), inclusive.astype(np.complex128), rtol=rtol)


@given(st.sampled_from(FLOAT_TYPES), st.integers(0, 99))
def test_log_sum_exp_is_the_logarithm_of_the_scan_of_exponentials(dtype: np.dtype[Any], seed: int) -> None:
    """Exclusive scans begin with the logarithm of zero."""
    x = filled(dtype, (5,), seed)
    rtol = tolerance(dtype) * 4
    exact = np.log(np.cumsum(np.exp(x.astype(np.float64))))
    np.testing.assert_allclose(check_shapes("CumulativeLogsumexp", x, np.int32(0)).astype(float), exact, rtol, rtol)
    assert run("CumulativeLogsumexp", x, np.int32(0), exclusive=True)[0] == -np.inf


def test_a_scan_wants_one_axis_that_exists() -> None:
    """The axis must be a scalar in range."""
    with pytest.raises(InvalidArgumentError, match=r"Expected scan axis in the range \[-1, 1\), but got 1"):
        run("Cumsum", np.ones(3), np.int32(1))
    with pytest.raises(InvalidArgumentError, match="axis must be a scalar"):
        run("Cumsum", np.ones(3), np.array([0]))
    assert run("Cumsum", np.zeros((0, 3)), np.int32(0), exclusive=True).shape == (0, 3)
