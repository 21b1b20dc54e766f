"""Fits of families of kernels: what was measured comes out again, from a file, and on devices that nobody measured."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

from partita.devices.calibration.fitting.kernels import TimedKernels, fit_kernels
from partita.devices.calibration.toml_text import toml_text
from partita.devices.timing.fits.kernels.kernel_model import KernelModel
from partita.devices.timing.fits.kernels.kernel_table import read_model, write_model
from partita.devices.timing.fits.kernels.transferred import transferred
from partita.errors import InvalidArgumentError
from partita.graph.arrays import Floats

from .streaming import Copies, drawn_copies, gpus, true_ns


def fitted(pooled: bool, rows: int = 120) -> dict[str, KernelModel[Copies]]:
    """Models of four devices."""
    measured = {
        name: TimedKernels(drawn := drawn_copies(rows, i), true_ns(drawn, spec, i), spec)
        for i, (name, spec) in enumerate(gpus().items())
    }
    return fit_kernels(measured, source="made up", date="2026-11-29", pooled=pooled)


def off_percent(predicted: Floats, true: Floats) -> float:
    """The mean error."""
    return float(100 * np.mean(np.abs(predicted / true - 1)))


@pytest.mark.parametrize("pooled", [False, True])
def test_rows_that_were_not_seen(pooled: bool) -> None:
    """Other rows are predicted to some percent, and intervals hold about 80 % of them."""
    asked = drawn_copies(200, 99)
    for name, model in fitted(pooled).items():
        true, said = true_ns(asked, gpus()[name], 98), model.predict(asked)
        assert off_percent(said.time_ns, true) < 5
        held = np.mean((said.low_ns <= true) & (true <= said.high_ns))
        assert 0.6 < held < 0.97, name


def test_a_file_says_what_the_fit_says() -> None:
    """A model written to TOML and read again predicts the same bits."""
    asked = drawn_copies(50, 5)
    for name, model in fitted(pooled=True).items():
        text = toml_text({"fits": {"copies": write_model(model)}})
        again = read_model(Copies, tomllib.loads(text)["fits"]["copies"], gpus()[name], "file")
        assert np.array_equal(model.predict(asked).time_ns, again.predict(asked).time_ns)
        assert np.array_equal(model.predict(asked).high_ns, again.predict(asked).high_ns)
        assert again.explain(asked) == model.explain(asked)


def test_a_device_that_nobody_measured() -> None:
    """Each device is predicted from the others by its datasheet, with a wider interval."""
    asked, models = drawn_copies(100, 7), fitted(pooled=False)
    for name, spec in gpus().items():
        others = [model for other, model in models.items() if other != name]
        said, own = transferred(others, asked, spec), models[name].predict(asked)
        assert off_percent(said.time_ns, true_ns(asked, spec, 6)) < 8
        assert said.provenance == "transferred"
        assert np.all(said.high_ns / said.low_ns > own.high_ns / own.low_ns)


def test_outside_what_was_measured() -> None:
    """Where a size lies beyond those of the fit, the interval widens with each doubling."""
    model = fitted(pooled=False)["gpu0"]
    sizes = [1 << power for power in (12, 16, 20)]
    said = model.predict(Copies({"dtype": ["wide"] * 3}, {"rows": sizes, "columns": sizes}))
    widths = np.log(said.high_ns / said.low_ns)
    assert widths[0] < widths[1] < widths[2]


def test_what_is_wrong_is_named() -> None:
    """Times that cannot be, groups that were not fitted, rows of a file that are none."""
    rows, spec = drawn_copies(20), gpus()["gpu0"]
    with pytest.raises(InvalidArgumentError, match="gpu0: a time is -1"):
        fit_kernels({"gpu0": TimedKernels(rows, np.full(20, -1.0), spec)}, source="", date="")
    wide = rows.take(rows.of_type("dtype", "wide"))
    model = fit_kernels({"gpu0": TimedKernels(wide, true_ns(wide, spec), spec)}, source="", date="")["gpu0"]
    with pytest.raises(InvalidArgumentError, match="no fit of copies for 'narrow'; it has wide"):
        model.predict(rows)
    table = write_model(fitted(pooled=False)["gpu0"])
    table["wide"]["surface"]["rows"] = "wide 1\n"
    with pytest.raises(InvalidArgumentError, match="a line of rows is not 'dtype rows columns residual variance'"):
        read_model(Copies, table, spec, "file")
