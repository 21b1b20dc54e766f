"""Numbers of calibration files: `{ value = "2.1 us", source = "gemm.csv", date = "2026-11-23" }` and back.

    write(2100.0, "ns", source="gemm.csv", date="2026-11-23")       {"value": "2100 ns", "source": ..., "date": ...}
    read(that, "ns", "rig.toml: fits.products: floor")              2100.0

A number is written with the fewest digits that give the same float back, so that a file holds exactly what was fitted.
Files written by hand may use any unit of the dimension. `SourcedTable` reads the numbers of one table and says in its
errors which file, table and key is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from attrs import frozen

from ....errors import InvalidArgumentError
from ....graph.suggestions import suggestion
from ...tables import check_keys

Unit = Literal["ns", "FLOP/s", "B/s", "B", "ns/B", "%", ""]
"""ns: durations; FLOP/s and B/s: rates; B: sizes; ns/B: a slope; %: shares (of 1); "": plain numbers"""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,3})?")
_THOUSANDS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_FACTORS: Mapping[str, Mapping[str, int | Fraction]] = {
    "ns": {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9},
    "FLOP/s": {f"{prefix}FLOP/s": factor for prefix, factor in _THOUSANDS.items()},
    "B/s": {f"{prefix}B/s": factor for prefix, factor in _THOUSANDS.items()},
    "B": {f"{prefix}B": factor for prefix, factor in _THOUSANDS.items()}
    | {f"{prefix}iB": 2 ** (10 * i) for i, prefix in enumerate("KMGT", 1)},
    "ns/B": {"ns/B": 1},
    "%": {"%": Fraction(1, 100)},
    "": {"": 1},
}
_KEYS = ("value", "source", "date")


def digits(value: float) -> str:
    """A float in the fewest digits that give it back: "0.1", "2100", "1e+22"."""
    text = repr(float(value))
    return text.removesuffix(".0")


def write(value: float, unit: Unit, *, source: str, date: str) -> dict[str, str]:
    """A number as a table of text with unit, source and ISO date; InvalidArgumentError for one that is not finite."""
    if not math.isfinite(value):
        raise InvalidArgumentError(f"a fitted number is {value}; measure more rows, or leave out those that are wrong")
    number = format(Decimal(repr(float(value))).scaleb(2).normalize(), "f") if unit == "%" else digits(value)
    return {"value": f"{number} {unit}".strip(), "source": source, "date": date}


def read(value: object, unit: Unit, where: str) -> float:
    """The number that `write` wrote, in `unit`; InvalidArgumentError, which begins with `where`, for anything else."""
    text = value.get("value") if isinstance(value, Mapping) else value
    if isinstance(value, Mapping):
        for key in _KEYS:
            if not isinstance(value.get(key), str):
                raise InvalidArgumentError(
                    f"{where}: {key!r} is missing; write {{ value = '...', source = '...', date = 'YYYY-MM-DD' }}"
                )
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{where}: {text!r} must be a text with a unit such as '1.5 {unit}'")
    number, _, given = text.strip().partition(" ")
    factors = _FACTORS[unit]
    given = given.strip()
    if given not in factors:
        known = ", ".join(factors) if unit else "none: it is a plain number"
        raise InvalidArgumentError(f"{where}: the unit of {text!r} must be one of: {known}")
    return _scaled(number, Fraction(factors[given]), where)


def _scaled(number: str, factor: Fraction, where: str) -> float:
    """The float nearest to the product: "12.3 %" is the float 0.123, not 12.3 * 0.01."""
    if _NUMBER.fullmatch(number) is None:
        raise InvalidArgumentError(f"{where}: {number!r} is no number; write it as in '1.5e3'")
    return float(Fraction(number) * factor)


@frozen
class SourcedTable:
    """One table of a calibration file, and where it stands ("rig.toml: fits.products"), for errors."""

    table: Mapping[str, Any]  # Any: what TOML holds
    where: str

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.table, Mapping):
            raise InvalidArgumentError(f"{self.where}: {self.table!r} must be a table; calibrate the device again")

    def number(self, key: str, unit: Unit) -> float:
        """The number under a key."""
        return read(self._get(key), unit, f"{self.where}: {key}")

    def source(self, key: str) -> str:
        """The source of the number under a key, "" where the file has none."""
        value = self._get(key)
        return str(value.get("source", "")) if isinstance(value, Mapping) else ""

    def text(self, key: str) -> str:
        """The text under a key, without unit."""
        value = self._get(key)
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{self.where}: {key}: {value!r} must be a text")
        return value

    def inner(self, key: str) -> SourcedTable:
        """The table under a key."""
        return SourcedTable(self._get(key), f"{self.where}.{key}")

    def only(self, keys: Sequence[str]) -> None:
        """InvalidArgumentError for a key that is none of `keys`, with the nearest."""
        check_keys(self.table, keys, self.where)

    def _get(self, key: str) -> Any:
        if key not in self.table:
            raise InvalidArgumentError(
                f"{self.where}: the key {key!r} is missing{suggestion(key, list(self.table))}; calibrate it again"
            )
        return self.table[key]
