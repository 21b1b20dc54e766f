"""Checkpoints: the formula is the mean of a drawn process, and the closed form its largest value."""

from __future__ import annotations

from math import exp, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, strategies as st

from partita.errors import InvalidArgumentError
from partita.scenarios import Checkpointing, best_checkpointing, goodput_of_interval

MTBFS = st.floats(1.0, 1e9)
SHARES = st.floats(1e-9, 3.0)


def drawn_goodput(
    interval: float, mtbf: float, checkpoint: float, restart: float, segments: int
) -> tuple[float, float]:
    """The share of work in drawn segments, each from one whole checkpoint to the next, and its standard error."""
    random = np.random.default_rng(7)
    elapsed = np.zeros(segments)
    needed = np.full(segments, interval + checkpoint)
    running = np.arange(segments)
    while len(running):
        failure = random.exponential(mtbf, len(running))
        elapsed[running] += np.minimum(failure, needed[running])
        running = running[failure < needed[running]]
        needed[running] = restart + interval + checkpoint
    goodput = interval / elapsed.mean()
    return goodput, goodput * elapsed.std() / elapsed.mean() / sqrt(segments)


@pytest.mark.parametrize("restart", [0.0, 120.0, 1800.0])
@pytest.mark.parametrize("interval", [200.0, 851.3, 5000.0])
def test_the_formula_is_the_mean_of_the_process(interval: float, restart: float) -> None:
    """Failures in work, checkpoints and restarts alike: within four standard errors of 100,000 drawn segments."""
    drawn, error = drawn_goodput(interval, 3600.0, 120.0, restart, 100_000)
    assert goodput_of_interval(interval, 3600.0, 120.0, restart) == pytest.approx(drawn, abs=4 * error)


@given(MTBFS, SHARES, st.floats(0.0, 2.0), st.floats(1e-3, 1e3))
def test_no_other_interval_is_better(mtbf: float, checkpoint: float, restart: float, factor: float) -> None:
    """The closed form's goodput is that of its interval, and no less than that of any other."""
    best = best_checkpointing(mtbf, checkpoint * mtbf, restart * mtbf)
    of = [goodput_of_interval(best.interval_s * by, mtbf, checkpoint * mtbf, restart * mtbf) for by in (1.0, factor)]
    assert best.goodput == pytest.approx(of[0], rel=1e-9)
    assert of[1] <= best.goodput * (1 + 1e-9)


@given(MTBFS, SHARES, st.floats(0.0, 2.0), st.floats(1.0, 1e3))
def test_rarer_failures_mean_more_work(mtbf: float, checkpoint: float, restart: float, factor: float) -> None:
    """Goodput is in (0, 1], and grows with the time between failures."""
    often, rarely = (best_checkpointing(m, checkpoint * mtbf, restart * mtbf) for m in (mtbf, factor * mtbf))
    assert 0 < often.goodput <= rarely.goodput * (1 + 1e-12)
    assert rarely.goodput <= 1


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_without_failures_all_time_is_work(checkpoint: float, restart: float) -> None:
    """Then no checkpoint is written; one that is costs what it takes."""
    assert best_checkpointing(inf, checkpoint, restart) == Checkpointing(inf, 1.0)
    assert goodput_of_interval(60.0, inf, checkpoint, restart) == 60 / (60 + checkpoint)


@given(st.floats(1e-6, 1e-3))
def test_short_checkpoints_have_youngs_interval(share: float) -> None:
    """The interval goes to sqrt(2 c M) as the checkpoint c does to 0, from below, with an error of 2/3 of c."""
    young = sqrt(2 * share)
    interval = best_checkpointing(1.0, share).interval_s
    assert young - interval == pytest.approx(2 / 3 * share, rel=0.05)


@given(st.floats(0.99, 1.01))
def test_the_series_meets_the_function(factor: float) -> None:
    """Where the series of short checkpoints ends, both satisfy 1 - x = e^-(x + c)."""
    checkpoint = 0.5e-4 * factor
    share = best_checkpointing(1.0, checkpoint).interval_s
    assert 1 - share == pytest.approx(exp(-share - checkpoint), rel=1e-13)


def test_an_hour_between_failures_and_two_minutes_a_checkpoint() -> None:
    """The optimum of first order is 9.2 % too long there; its own estimate of the goodput is 2.9 % too low."""
    best = best_checkpointing(3600.0, 120.0)
    young = sqrt(2 * 120 * 3600)
    assert best.interval_s == pytest.approx(851.2975, abs=1e-3)
    assert best.goodput == pytest.approx(1 - best.interval_s / 3600)
    assert young / best.interval_s == pytest.approx(1.0919, abs=1e-4)
    assert (1 - sqrt(2 * 120 / 3600)) / best.goodput == pytest.approx(0.9715, abs=1e-4)


def test_free_checkpoints_are_written_all_the_time() -> None:
    """Nothing is then lost but restarts."""
    assert best_checkpointing(3600.0, 0.0, 36.0) == Checkpointing(0.0, exp(-0.01))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((0.0, 1.0), "mtbf_s=0.0"), ((1.0, -1.0), "checkpoint_s=-1.0"), ((1.0, 1.0, inf), "restart_s=inf")],
)
def test_impossible_times_are_refused(arguments: tuple[float, ...], named: str) -> None:
    """By name."""
    with pytest.raises(InvalidArgumentError, match=named):
        best_checkpointing(*arguments)
    with pytest.raises(InvalidArgumentError, match=named):
        goodput_of_interval(60.0, *arguments)


@pytest.mark.parametrize("interval", [0.0, inf, -1.0])
def test_an_interval_is_positive(interval: float) -> None:
    """And finite: a run that writes no checkpoint would never end."""
    with pytest.raises(InvalidArgumentError, match="interval_s="):
        goodput_of_interval(interval, 3600.0, 120.0)
