"""Gamma and Poisson numbers are those TensorFlow draws, follow their distributions, and have the shapes they should."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from partita.devices.state import DeviceState
from partita.errors import InvalidArgumentError
from partita.graph.dtypes import DataType
from tests.devices.kernels.harness import check_shapes, run, shapes

ALPHAS = np.array([0.3, 1.0, 2.5, 50.0], np.float32)
RATES = np.array([0.5, 9.0, 10.0, 1000.0], np.float32)
# Drawn with TensorFlow 2.21 on a CPU, seed 5, seed2 7, shape [2]: two runs of one session.
GAMMA = [
    [[5.1135367e-01, 6.6513348e-01, 1.8866248, 54.244411], [5.7013829e-05, 1.5966409, 2.5805168, 48.140968]],
    [[5.2872756e-03, 2.2406428, 1.9455639, 55.407803], [2.2127254e-02, 3.1633452e-01, 1.5151414, 36.382694]],
]
POISSON = [[[0, 14, 8, 970], [0, 12, 13, 1005]], [[1, 7, 12, 1037], [2, 10, 10, 991]]]


def test_gamma_numbers_are_tensorflows() -> None:
    """For alpha below 1, 1, and above; the second run continues the stream."""
    state = DeviceState(0)
    for expected in GAMMA:
        drawn = run("RandomGamma", np.array([2]), ALPHAS, state=state, seed=5, seed2=7)
        np.testing.assert_allclose(drawn, np.array(expected, np.float32), rtol=3e-7)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.INT64, DataType.FLOAT, DataType.DOUBLE, DataType.HALF])
def test_poisson_numbers_are_tensorflows(dtype: DataType) -> None:
    """Counted out below 10, by rejection from there on; the same in every type."""
    state = DeviceState(0)
    for expected in POISSON:
        drawn = run("RandomPoissonV2", np.array([2]), RATES, state=state, seed=5, seed2=7, dtype=dtype)
        np.testing.assert_array_equal(drawn, np.array(expected).astype(drawn.dtype))


def test_stateless_numbers_are_tensorflows() -> None:
    """The shape ends with that of the parameters; TensorFlow 2.21 gives these for the seed [5, 7]."""
    seed, alphas = np.array([5, 7]), np.array([0.3, 1.0, 2.5])
    gamma = check_shapes("StatelessRandomGammaV2", np.array([2, 3]), seed, alphas)
    expected = [[0.0015562773749853726, 2.6918079010237856, 1.748998608462951]]
    expected += [[0.3211165295060748, 1.4528450000713018, 1.1635860498863349]]
    np.testing.assert_allclose(gamma, expected, rtol=1e-12)
    key, counter = run("StatelessRandomGetKeyCounter", seed)
    by_key = check_shapes("StatelessRandomGammaV3", np.array([2, 3]), key, counter, np.int32(3), alphas)
    np.testing.assert_array_equal(by_key, gamma)
    rates = np.array([0.5, 9.0, 100.0], np.float32)
    poisson = check_shapes("StatelessRandomPoisson", np.array([2, 3]), seed, rates, dtype=DataType.INT32)
    np.testing.assert_array_equal(poisson, [[0, 11, 94], [1, 9, 104]])


def test_stateless_shapes_end_with_that_of_the_parameters() -> None:
    """Others are refused, empty ones draw nothing."""
    seed = np.array([5, 7])
    with pytest.raises(InvalidArgumentError, match="Shape passed in must end with broadcasted shape"):
        run("StatelessRandomGammaV2", np.array([2]), seed, np.ones(3))
    assert run("StatelessRandomPoisson", np.array([0, 3]), seed, np.ones(3), dtype=DataType.HALF).shape == (0, 3)


def test_numbers_follow_their_distributions() -> None:
    """Checked by the Kolmogorov-Smirnov test, and for counts by mean and variance."""
    for alpha in (0.2, 1.0, 7.0):
        drawn = run("RandomGamma", np.array([2000]), np.float64(alpha), seed=3)
        assert stats.kstest(drawn, stats.gamma(alpha).cdf).pvalue > 1e-3
    for rate in (2.0, 60.0):
        drawn = run("RandomPoissonV2", np.array([4000]), np.float64(rate), seed=3, dtype=DataType.DOUBLE)
        assert abs(drawn.mean() - rate) < 5 * np.sqrt(rate / 4000)
        assert abs(drawn.var() / rate - 1) < 0.15


def test_rates_that_make_no_sense_give_nan() -> None:
    """Negative and infinite rates give NaN; a rate of zero gives zeros."""
    drawn = run("RandomPoissonV2", np.array([3]), np.array([-1.0, np.inf, 0.0]), seed=1, dtype=DataType.DOUBLE)
    assert np.isnan(drawn[:, :2]).all()
    assert (drawn[:, 2] == 0).all()


def test_every_place_gets_a_number_of_every_distribution() -> None:
    """The shape given, then that of the parameters; empty ones draw nothing."""
    alphas = np.ones((3, 4), np.float32)
    assert run("RandomGamma", np.array([2, 5]), alphas, seed=1).shape == (2, 5, 3, 4)
    assert run("RandomGamma", np.array([0]), alphas, seed=1).shape == (0, 3, 4)
    assert run("RandomPoisson", np.array([], np.int32), alphas, seed=1).shape == (3, 4)
    assert shapes("RandomGamma", np.array([2, 5]), (3, None)) == [(2, 5, 3, None)]
    assert shapes("RandomPoissonV2", np.array([2]), None, dtype=DataType.INT64) == [None]
    with pytest.raises(InvalidArgumentError, match="must be a vector"):
        run("RandomGamma", np.array(3), alphas, seed=1)


def test_without_seeds_the_device_decides() -> None:
    """Devices of the same seed draw the same numbers."""
    drawn = [run("RandomGamma", np.array([4]), np.float32(2.0), state=DeviceState(seed)) for seed in (1, 1, 2)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
