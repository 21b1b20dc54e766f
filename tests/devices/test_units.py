"""Quantities are read exactly or refused; a number without a unit is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from partita.devices.units import (
    format_bytes,
    format_ns,
    parse_bytes,
    parse_bytes_per_s,
    parse_flops_per_s,
    parse_lifetime_s,
    parse_ns,
    parse_share,
    parse_usd_per_hour,
    parse_watts,
)
from partita.errors import InvalidArgumentError

PARSERS = (
    *(parse_bytes, parse_bytes_per_s, parse_flops_per_s, parse_ns, parse_share),
    *(parse_usd_per_hour, parse_watts, parse_lifetime_s),
)


@given(st.integers(0, 10**6), st.sampled_from(("", " ", "  ")))
def test_whole_numbers_scale_by_their_unit(count: int, space: str) -> None:
    """The number times the unit, with or without a space between."""
    assert parse_bytes(f"{count}{space}GiB") == count * 2**30
    assert parse_bytes_per_s(f"{count}{space}Gbit/s") == count * 125_000_000
    assert parse_ns(f"{count}{space}us") == count * 1000
    assert parse_flops_per_s(f"{count}{space}TFLOP/s") == count * 10**12


@given(st.integers(0, 10**9))
def test_decimals_are_exact(thousandths: int) -> None:
    """Three decimals of a microsecond are nanoseconds, without the rounding of floats."""
    assert parse_ns(f"{thousandths // 1000}.{thousandths % 1000:03} us") == thousandths


@given(st.integers(1, 10**5))
def test_prices_powers_and_lifetimes_are_floats(count: int) -> None:
    """Dollars an hour, watts and seconds."""
    assert parse_usd_per_hour(f"{count / 100:.2f} $/h") == parse_usd_per_hour(f"{count / 100:.2f} USD/h") == count / 100
    assert parse_watts(f"{count} W") == parse_watts(f"{count}e-3 kW") == count
    assert parse_lifetime_s(f"{24 * count} h") == parse_lifetime_s(f"{count} d") == 86400 * count


@pytest.mark.parametrize("parse", PARSERS)
@given(number=st.integers(0, 10**9) | st.floats(0, 1e9).map(lambda x: round(x, 3)))
def test_a_number_without_unit_is_refused(parse: object, number: float) -> None:
    """As text and as a number."""
    assert callable(parse)
    for text in (str(number), number):
        with pytest.raises(InvalidArgumentError):
            parse(text)


@pytest.mark.parametrize(
    ("parse", "text", "why"),
    [
        (parse_bytes, "40", "it has no unit; write one, such as '40 GiB'"),
        (parse_bytes, "40 gb", "the unit 'gb' is none of"),
        (parse_bytes, "0.5 B", "is no whole number of bytes"),
        (parse_bytes, "-1 GB", "it is negative"),
        (parse_bytes, "forty GB", "write a number and a unit"),
        (parse_bytes_per_s, "900 GB", "the unit 'GB' is none of"),
        (parse_bytes_per_s, "900 Gb/h", "the unit 'Gb/h' is none of"),
        (parse_ns, "5 m", "the unit 'm' is none of"),
        (parse_flops_per_s, "1 TFLOPS", "the unit 'TFLOPS' is none of"),
        (parse_usd_per_hour, "2.5 EUR/h", "the unit 'EUR/h' is none of $/h, USD/h"),
        (parse_usd_per_hour, "1e6 $/h", "is no price of any hardware: above 1e+05 dollars per hour"),
        (parse_watts, "700 w", "the unit 'w' is none of W, kW"),
        (parse_watts, "0 W", "is no power: it must be above 0, such as '700 W'"),
        (parse_lifetime_s, "5 years", "the unit 'years' is none of s, min, h, d"),
        (parse_lifetime_s, "0 h", "is no time between failures: it must be above 0"),
        (parse_bytes, "1e30 B", "is no amount of memory of any hardware: above 1e+18 bytes"),
        (parse_bytes_per_s, "1001 PB/s", "is no bandwidth of any hardware"),
        (parse_ns, "1e30 s", "is no duration of any hardware: above 1e+12 nanoseconds"),
        (parse_flops_per_s, "1e30 FLOP/s", "is no compute rate of any hardware"),
        (parse_ns, "nan s", "write a number and a unit"),
        (parse_share, "0 %", "above 0 % and at most 100 %"),
        (parse_share, "101 %", "above 0 % and at most 100 %"),
    ],
)
def test_errors_say_what_is_wrong(parse: object, text: str, why: str) -> None:
    """The text itself comes first, then the reason."""
    assert callable(parse)
    with pytest.raises(InvalidArgumentError) as error:
        parse(text)
    assert error.value.message.startswith(repr(text))
    assert why in error.value.message


def test_bits_and_bytes_differ() -> None:
    """b is an eighth of B."""
    assert parse_bytes_per_s("8 Gb/s") == parse_bytes_per_s("1 GB/s") == 10**9


def test_formats() -> None:
    """Sizes and durations for people."""
    assert [format_bytes(n) for n in (0, 1536, 40 * 2**30)] == ["0 B", "1.50 KiB", "40.00 GiB"]
    assert [format_ns(n) for n in (0, 999, 1234, 2_500_000_000)] == ["0 ns", "999 ns", "1.234 us", "2.500 s"]
