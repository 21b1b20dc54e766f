"""Regions cover rows and columns in order; maxima and means are of regions; gradients go back into them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import Array
from tests.devices.kernels.harness import check_shapes, run

FLAGS = st.booleans()
RATIOS = st.sampled_from([1.0, 1.2, 1.44, 1.73, 2.0, 2.5])


def regions(sequence: Array, size: int, overlapping: bool) -> list[slice]:
    """The definition."""
    return [slice(a, min(b + overlapping, size)) for a, b in pairwise(sequence)]


def image(rows: int, columns: int) -> Array:
    """Distinct numbers."""
    return np.random.default_rng(0).permutation(2 * rows * columns * 3).reshape(2, rows, columns, 3).astype(np.float64)


@given(st.integers(4, 20), st.integers(4, 20), RATIOS, FLAGS, FLAGS, st.integers(1, 99))
def test_regions_and_what_is_made_of_them(
    rows: int, columns: int, ratio: float, spread: bool, overlapping: bool, seed: int
) -> None:
    """Sizes are k or k + 1 cells; the gradients are adjoint to the poolings."""
    x = image(rows, columns)
    attrs: dict[str, Any] = {"pooling_ratio": [1.0, ratio, 1.0, 1.0], "seed": seed, "deterministic": True}
    attrs |= {"pseudo_random": spread, "overlapping": overlapping}
    best, down, across = check_shapes("FractionalMaxPool", x, **attrs)
    assert (down[0], down[-1], across.tolist()) == (0, rows, list(range(columns + 1)))
    assert set(np.diff(down)) <= {rows // (len(down) - 1), rows // (len(down) - 1) + 1}
    mean, *same = check_shapes("FractionalAvgPool", x, **attrs)
    np.testing.assert_array_equal(same[0], down)
    parts = [x[:, part] for part in regions(down, rows, overlapping)]
    parts = [np.stack([part[:, :, c] for c in regions(across, columns, overlapping)[:1]], 2)[:, :, 0] for part in parts]
    np.testing.assert_array_equal(best[:, :, 0], np.stack([part.max(axis=(1, 2)) for part in parts], 1))
    np.testing.assert_allclose(mean[:, :, 0], np.stack([part.mean(axis=(1, 2)) for part in parts], 1))
    grad = np.random.default_rng(1).normal(size=best.shape)
    back = check_shapes("FractionalMaxPoolGrad", x, best, grad, down, across, overlapping=overlapping)
    np.testing.assert_allclose((back * x).sum(), (grad * best).sum())
    shared = check_shapes("FractionalAvgPoolGrad", np.array(x.shape), grad, down, across, overlapping=overlapping)
    np.testing.assert_allclose((shared * x).sum(), (grad * mean).sum())


@pytest.mark.parametrize(
    ("spread", "sizes"),
    [(False, [2, 1, 1, 2, 2, 1, 2, 2, 1, 2, 1, 1, 2]), (True, [1, 2, 1, 2, 2, 1, 2, 1, 2, 1, 2, 1, 2])],
)
def test_regions_are_those_of_tensorflow(spread: bool, sizes: list[int]) -> None:
    """Sizes that TensorFlow 2.21 draws for seeds 1 and 2; columns come from what follows in the stream."""
    attrs: dict[str, Any] = {"pooling_ratio": [1.0, 1.5, 1.44, 1.0], "deterministic": True, "seed": 1, "seed2": 2}
    _, rows, columns = run("FractionalMaxPool", np.zeros((1, 20, 14, 1)), pseudo_random=spread, **attrs)
    assert np.diff(rows).tolist() == sizes
    assert np.diff(columns).tolist() == ([1, 2, 2, 1, 2, 1, 2, 1, 2] if spread else [1, 2, 2, 2, 2, 1, 2, 1, 1])


def test_regions_change_from_run_to_run() -> None:
    """Unless they are deterministic; then seeds matter."""
    state, ratios = DeviceState(seed=0), [1.0, 1.5, 1.5, 1.0]
    x = np.zeros((1, 30, 30, 1))
    draws = [run("FractionalAvgPool", x, state=state, pooling_ratio=ratios)[1].tolist() for _ in range(2)]
    assert draws[0] != draws[1]
    fixed = [run("FractionalAvgPool", x, pooling_ratio=ratios, deterministic=True)[1].tolist() for _ in range(2)]
    assert fixed[0] == fixed[1]


@pytest.mark.parametrize(
    ("ratios", "attrs", "message"),
    [
        ([1.0, 0.5, 1.0, 1.0], {}, "pooling_ratio cannot be smaller than 1, got: 0.5"),
        ([2.0, 1.0, 1.0, 1.0], {}, "Fractional max pooling is not yet supported on the batch nor channel dimension."),
        ([1.0, 7.0, 1.0, 1.0], {}, "dimension 1. Input dim size: 6 pooling ratio: 7"),
        ([1.0, 1.0, 1.0, 1.0], {"seed": 1}, "Both seed and seed2 should be 0 if deterministic is false."),
    ],
)
def test_what_cannot_be_pooled(ratios: list[float], attrs: dict[str, Any], message: str) -> None:
    """TensorFlow's messages."""
    with pytest.raises(InvalidArgumentError, match=message):
        run("FractionalMaxPool", np.zeros((1, 6, 6, 1)), pooling_ratio=ratios, **attrs)


def test_the_gradient_wants_its_own_output() -> None:
    """A maximum that is none of its region's cells is refused."""
    ends = np.array([0, 2])
    with pytest.raises(InvalidArgumentError, match="tensor_out_dup is not the same as tensor_out"):
        run("FractionalMaxPoolGrad", np.ones((1, 2, 2, 1)), np.zeros((1, 1, 1, 1)), np.ones((1, 1, 1, 1)), ends, ends)
