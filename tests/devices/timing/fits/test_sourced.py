"""Numbers of calibration files come back exactly, and wrong ones are refused with their place."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.timing.fits.sourced import SourcedTable, Unit, read, write
from partita.errors import InvalidArgumentError

UNITS: tuple[Unit, ...] = ("ns", "FLOP/s", "B/s", "B", "ns/B", "%", "")


@given(st.floats(1e-90, 1e90) | st.floats(-1e90, -1e-90) | st.just(0.0), st.sampled_from(UNITS))
def test_the_same_float_comes_back(value: float, unit: Unit) -> None:
    """Reading what was written gives the float itself, in every unit."""
    assert read(write(value, unit, source="s", date="2026-01-01"), unit, "here") == value


def test_hand_written_units_are_read() -> None:
    """Any unit of the dimension may be used."""
    assert read({"value": "2.1 us", "source": "s", "date": "2026-01-01"}, "ns", "here") == 2100
    assert read("12.3 %", "%", "here") == 0.123


@pytest.mark.parametrize("text", ["2.1", "2.1 GB", "nan ns", "x ns", "", " ns", "1_0 ns"])
def test_wrong_numbers_are_refused(text: str) -> None:
    """A text without a number or with another unit is an error with its place."""
    with pytest.raises(InvalidArgumentError, match=r"f.toml: fits.x: floor"):
        SourcedTable({"floor": {"value": text, "source": "s", "date": "d"}}, "f.toml: fits.x").number("floor", "ns")


def test_missing_keys_and_sources_are_named() -> None:
    """A key that is not there and a value without its source are errors."""
    with pytest.raises(InvalidArgumentError, match=r"f: x: the key 'floor' is missing"):
        SourcedTable({}, "f: x").number("floor", "ns")
    with pytest.raises(InvalidArgumentError, match=r"'source' is missing"):
        SourcedTable({"floor": {"value": "1 ns"}}, "f: x").number("floor", "ns")
