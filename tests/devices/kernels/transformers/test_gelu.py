"""GELU weighs each number by the share of the normal distribution below it."""

from __future__ import annotations

from math import erf, sqrt, tanh

import ml_dtypes
import numpy as np
import pytest

from partita.errors import InvalidArgumentError
from tests.devices.kernels.harness import check_shapes, run

TYPES = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}


@pytest.mark.parametrize("t", TYPES)
def test_gelu_is_x_times_the_share_below_it(t: str) -> None:
    """Exact and by tanh, and the slope by the difference quotient of what is computed in float64."""
    dtype, tolerance = np.dtype(getattr(ml_dtypes, t, t)), TYPES[t]
    x = np.linspace(-6, 6, 25).astype(dtype)
    wide = x.astype(np.float64)
    exact = [v * (1 + erf(v / sqrt(2))) / 2 for v in wide]
    by_tanh = [v * (1 + tanh(sqrt(2 / np.pi) * (v + 0.044715 * v**3))) / 2 for v in wide]
    for approximate, wanted in ((False, exact), (True, by_tanh)):
        y = check_shapes("Partita>Gelu", x, approximate=approximate)
        np.testing.assert_allclose(y.astype(np.float64), wanted, tolerance, tolerance)
        above, below = (run("Partita>Gelu", wide + step, approximate=approximate) for step in (1e-6, -1e-6))
        d_x = check_shapes("Partita>GeluGrad", np.full_like(x, 2), x, approximate=approximate)
        slope_tolerance = max(tolerance, 1e-8)
        np.testing.assert_allclose(d_x.astype(np.float64), (above - below) / 1e-6, slope_tolerance, 2 * slope_tolerance)


def test_gradients_of_another_shape() -> None:
    """They are refused, with both shapes."""
    with pytest.raises(InvalidArgumentError, match=r"d_y has the shape \[2\] and x \[3\]; give equal ones"):
        run("Partita>GeluGrad", np.ones(2, np.float32), np.ones(3, np.float32))
