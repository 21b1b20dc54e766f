"""A calibration answers by device name, from a file first and then from the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from partita.devices import Calibration, load_calibration
from partita.devices.catalog import device_spec
from partita.devices.timing.fits.calibration import DeviceFits
from partita.errors import InvalidArgumentError, NotFoundError

ENTRY = """name = "mine"
kind = "GPU"
memory = { value = "80 GB", source = "s", date = "2026-01-01" }
memory_bandwidth = { value = "3350 GB/s", source = "s", date = "2026-01-01" }
peak_flops = { fp32 = { value = "67 TFLOP/s", source = "s", date = "2026-01-01" } }
"""


def _file(folder: Path, fits: str) -> Path:
    path = folder / "device_mine.toml"
    path.write_text(ENTRY + fits, "utf-8")
    return path


def test_a_file_holds_the_fits_of_its_device(tmp_path: Path) -> None:
    """The device is found by name, another is not, and models without a table are None."""
    calibration = load_calibration(_file(tmp_path, "[fits]\n"))
    fits = calibration.device("mine")
    assert fits is not None
    assert fits.products is None
    assert fits.collectives is None
    assert calibration.device("H100-SXM") is None


def test_the_first_calibration_speaks_first() -> None:
    """`over` keeps the device of the first and has those of the second."""
    first, second = (DeviceFits(device_spec("H100-SXM"), {}) for _ in range(2))
    both = Calibration({"H100-SXM": first}).over(Calibration({"H100-SXM": second, "V100": second}))
    assert both.device("H100-SXM") is first
    assert both.device("h100_sxm") is first
    assert both.device("V100") is second
    assert both.device("no such device") is None


def test_the_catalog_knows_no_device_by_an_unknown_name() -> None:
    """A device outside of the catalog has no fits; asking is no error."""
    assert Calibration.of_catalog().device("inline") is None


@pytest.mark.parametrize(
    ("fits", "says"),
    [
        ("", "the table 'fits' is missing"),
        ("[fits]\nproduct = {}\n", "device_mine.toml: fits: unknown key 'product'; did you mean 'products'?"),
        ("[fits]\nproducts = 3\n", "fits.products: 3 must be a table"),
        ("[fits.products]\n", "device_mine.toml: fits.products"),
        ("[fits", "this is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_table(tmp_path: Path, fits: str, says: str) -> None:
    """The error names file, table and key."""
    with pytest.raises(InvalidArgumentError) as caught:
        load_calibration(_file(tmp_path, fits))
    assert says in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere is an error."""
    with pytest.raises(NotFoundError, match=r"none\.toml"):
        load_calibration(tmp_path / "none.toml")
