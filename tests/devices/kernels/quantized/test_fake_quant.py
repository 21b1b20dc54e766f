"""Fake quantisation."""

from __future__ import annotations

import numpy as np

from tests.devices.kernels.harness import run


def test_fake_quantisation_rounds_ties_up() -> None:
    """-1 lies midway between two points of the grid of 255 steps from -2 to 0."""
    got = run("FakeQuantWithMinMaxVars", np.array([-1.0], np.float32), np.float32(-3), np.float32(-1))
    np.testing.assert_allclose(got, [-0.99607849], rtol=1e-6)
