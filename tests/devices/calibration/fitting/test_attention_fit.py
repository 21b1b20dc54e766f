"""The fit of attention finds the numbers that made the shares, and its interval is from sizes left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partita.devices.calibration.fitting.layers import ATTENTION, fit_layers, left_out
from partita.devices.timing.fits.attention import AttentionModel, AttentionNumbers, Attentions
from partita.errors import InvalidArgumentError

PEAK = 2e15
TRUE = {"fwd": AttentionNumbers(6e4, 2e15, 0.6, 2.5), "bwd": AttentionNumbers(9e4, 1.5e15, 1.2, 3.0)}


def measured(spread: float) -> tuple[Attentions, NDArray[np.float64]]:
    """Layers of several sizes, and shares that are off by a normal error in log time."""
    sizes = [(way, 1, s, h, h, q, 128) for way in TRUE for s in (2048, 16384) for h in (4, 16, 64) for q in (128, 192)]
    names = ("batch", "seq_len", "heads", "kv_heads", "qk_head_dim", "v_head_dim")
    directions, *columns = zip(*sizes, strict=True)
    layers = Attentions(directions, **{name: np.array(c) for name, c in zip(names, columns, strict=True)})
    ranges = {"seq_len": (2048, 16384), "streams": (4, 64), "dims": (256, 320)}
    time_ns = AttentionModel(TRUE, PEAK, ranges).predict(layers).time_ns
    noise = np.exp(np.random.default_rng(0).normal(0, spread, len(layers)))
    return layers, layers.flops * 1e9 / (PEAK * time_ns * noise)


def test_numbers_are_found_again() -> None:
    """Without noise the model says what made the rows, also of sizes that it has not seen."""
    layers, share = measured(0)
    model = fit_layers(ATTENTION, layers, share, PEAK, source="s", date="d")
    for direction, numbers in TRUE.items():
        assert model.numbers[direction][:2] == pytest.approx(numbers[:2], rel=0.1)
    assert np.abs(left_out(ATTENTION, layers, share, PEAK)).max() < 0.1


def test_the_same_rows_give_the_same_numbers() -> None:
    """And noise makes the interval as wide as it is."""
    model = fit_layers(ATTENTION, *measured(0.1), PEAK, source="s", date="d")
    assert fit_layers(ATTENTION, *measured(0.1), PEAK, source="s", date="d").to_table() == model.to_table()
    assert all(0.08 < numbers.spread < 0.3 for numbers in model.numbers.values())


def test_too_few_and_impossible_rows() -> None:
    """An error that says what to give."""
    layers, share = measured(0)
    with pytest.raises(InvalidArgumentError, match=r"5 sizes of attention fwd are too few for 4 numbers"):
        fit_layers(ATTENTION, layers.where(np.arange(5)), share[:5], PEAK, source="s", date="d")
    with pytest.raises(InvalidArgumentError, match=r"efficiency = .* must be above 0 and at most 2"):
        fit_layers(ATTENTION, layers, share * 10, PEAK, source="s", date="d")
