"""The fit of grouped products finds the numbers that made the shares."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partita.devices.calibration.fitting.layers import GROUPED, fit_layers, left_out
from partita.devices.timing.fits.grouped import STAGES, GroupedModel, GroupedNumbers, GroupedProducts
from partita.errors import InvalidArgumentError

PEAK = 2e15
TRUE = {stage: GroupedNumbers(4e3, 5e12, 8e14, 1.8) for stage in STAGES}


def measured() -> tuple[GroupedProducts, NDArray[np.float64]]:
    """Groups of several sizes and the shares that they reach."""
    sizes = [
        (stage, groups, 4096 * 8 // groups, n, k, 4)
        for stage in STAGES
        for groups in (16, 64, 256)
        for n, k in ((3072, 5120), (7168, 2048), (1024, 1024))
    ]
    stages, *columns = zip(*sizes, strict=True)
    names = ("groups", "m", "n", "k", "gradient_bytes")
    grouped = GroupedProducts(stages, **{name: np.array(c) for name, c in zip(names, columns, strict=True)})
    time_ns = GroupedModel(TRUE, PEAK, {"m": (1, 1 << 20)}).predict(grouped).time_ns
    return grouped, grouped.flops * 1e9 / (PEAK * time_ns)


def test_numbers_are_found_again() -> None:
    """Without noise the model says what made the rows, also of sizes that it has not seen, and always the same."""
    grouped, share = measured()
    model = fit_layers(GROUPED, grouped, share, PEAK, source="s", date="d")
    for stage in STAGES:
        assert model.numbers[stage][:3] == pytest.approx(TRUE[stage][:3], rel=0.1)
    assert np.abs(left_out(GROUPED, grouped, share, PEAK)).max() < 0.1
    assert fit_layers(GROUPED, grouped, share, PEAK, source="s", date="d").to_table() == model.to_table()


def test_too_few_and_impossible_rows() -> None:
    """An error that says what to give."""
    grouped, share = measured()
    with pytest.raises(InvalidArgumentError, match=r"3 sizes of grouped products fwd are too few"):
        fit_layers(GROUPED, grouped.where(np.arange(3)), share[:3], PEAK, source="s", date="d")
    with pytest.raises(InvalidArgumentError, match=r"27 rows of grouped products; give one each"):
        fit_layers(GROUPED, grouped, share[:3], PEAK, source="s", date="d")
