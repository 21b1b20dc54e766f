"""Parts of a calibration: sources by file, null models, intervals, and numbers that a source gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.calibrate import calibrate
from partita.devices.calibration.parts import cross_validated, numbers_of
from partita.devices.timing.fits.product_formula import ProductNumbers
from partita.errors import InvalidArgumentError

EXAMPLES = Path(__file__).parents[3] / "scenarios" / "examples" / "calibration"
MEMORY = "op,efficiency,gbps,latency_us\ndefault,0.666,8000.0,30\n"


def test_every_row_is_predicted_by_a_fit_without_it() -> None:
    """Five folds deal all rows, and neighbours are not dealt in turn."""
    folds = cross_validated(23, lambda of: set(of.tolist()), lambda seen, of: np.array([i in seen for i in of]))
    assert not folds.time_ns.any()
    left_out = [sorted(set(range(23)) - seen) for seen in folds.models]
    assert sorted(row for rows in left_out for row in rows) == list(range(23))
    assert any(np.ptp(np.diff(rows)) > 0 for rows in left_out)


def test_a_number_at_its_bound_has_no_interval() -> None:
    """Other numbers lie inside of theirs, in log space."""
    least, greatest = ProductNumbers(*8 * (1.0,)), ProductNumbers(*8 * (1e6,))
    model = ProductNumbers(1.0, 1e6, *6 * (100.0,))
    folds = [model._replace(start_ns=start) for start in (90.0, 95.0, 100.0, 105.0, 110.0)]
    floor, rate, half_area, start, *_ = numbers_of(model, folds, least, greatest)
    assert (floor.bound, floor.low, floor.high) == ("least", None, None)
    assert (rate.bound, rate.low, rate.high) == ("greatest", None, None)
    assert (half_area.low, half_area.high) == pytest.approx((100, 100))
    assert start.low is not None
    assert start.high is not None
    assert start.low < 100 < start.high
    assert start.low * start.high == pytest.approx(100**2)


def test_numbers_name_the_file_that_they_come_from() -> None:
    """A file of collectives is no source of products, nor the other way round."""
    report = calibrate([EXAMPLES / "op_timings.csv", EXAMPLES / "all_reduce_perf.txt"], "L4", date="2026-01-01")
    models = {part.name: part.model for part in report.parts}
    assert models["products"].source == models["memory_bound"].source == "op_timings.csv"
    assert models["collectives"].source == "all_reduce_perf.txt"
    nulls = {part.name: [null.name for null in part.null_models] for part in report.parts}
    assert nulls == {
        "products": ["datasheet", "roofline_3"],
        "memory_bound": ["datasheet"],
        "collectives": ["datasheet", "log_log"],
    }


def test_given_numbers_are_written_as_they_are(tmp_path: Path) -> None:
    """Nothing is fitted, so there is no error; beside times of the same ops they are refused."""
    given = tmp_path / "memory.csv"
    given.write_text(MEMORY, "utf-8")
    (part,) = calibrate([given], "B200-SXM", date="2026-01-01").parts
    assert (part.mape_percent, part.null_models) == (None, ())
    assert part.model.kinds["default"][:3] == (8_000_000_000_000, 0.666, 30000)
    with pytest.raises(InvalidArgumentError, match="leave one out"):
        calibrate([given, EXAMPLES / "op_timings.csv"], "B200-SXM", date="2026-01-01")
