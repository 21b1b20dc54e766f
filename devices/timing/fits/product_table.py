"""The model of products as a table of a calibration file, and back.

    floor_ns = { value = "2810 ns", source = "gemm.csv", date = "2026-11-23" }      and seven more numbers
    spread, range_m, range_n, range_k, range_batch
    [surface]
    lengths = { "log2 m" = 2.5, ... }
    rows = "m n k layout residual variance", a row a line

Numbers stand with the digits that the fit rounded them to, so that a file gives the same predictions as the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.arrays import Floats, Numbers
from ...spec import DeviceSpec
from .layers import octaves_outside
from .product_formula import ProductNumbers
from .product_surface import ProductRows, ProductSurface
from .sourced import Unit, read, write
from .surface import Residuals, SurfaceNumbers

UNITS: tuple[Unit, ...] = ("ns", "FLOP/s", "", "ns", "ns", "B/s", "", "")
"""of the numbers, in their order"""
UNKNOWN_LAYOUT = "-"


class ProductRanges(NamedTuple):
    """The least and the greatest size among the products of a fit."""

    m: tuple[int, int]
    n: tuple[int, int]
    k: tuple[int, int]
    batch: tuple[int, int]

    def octaves_outside(self, m: Numbers, n: Numbers, k: Numbers, batch: Numbers) -> Floats:
        """By product, how many doublings its sizes lie outside, summed over the sizes."""
        return octaves_outside({"m": m, "n": n, "k": k, "batch": batch}, self._asdict())


EVERYWHERE = ProductRanges(*4 * ((1, 1 << 31),))
"""of numbers that were not fitted but given"""


def write_table(
    numbers: ProductNumbers,
    spread: float,
    ranges: ProductRanges,
    surface: ProductSurface | None,
    source: str,
    date: str,
) -> dict[str, Any]:
    """The table of a model, its numbers with their source and date."""
    table: dict[str, Any] = {
        name: write(value, unit, source=source, date=date)
        for name, value, unit in zip(ProductNumbers._fields, numbers, UNITS, strict=True)
    }
    table["spread"] = write(spread, "", source=source, date=date)
    table |= {f"range_{name}": list(pair) for name, pair in ranges._asdict().items()}
    return table if surface is None else table | {"surface": _surface_table(surface)}


def _surface_table(surface: ProductSurface) -> dict[str, Any]:
    rows, numbers = surface.rows, surface.numbers
    layout = rows.layout or ("",) * len(rows.m)
    columns = zip(rows.m, rows.n, rows.k, layout, *surface.residuals, strict=True)
    lines = (f"{m} {n} {k} {name or UNKNOWN_LAYOUT} {short(r)} {short(v)}" for m, n, k, name, r, v in columns)
    return {
        "deviation": numbers.deviation,
        "noise": numbers.noise,
        "quantile": numbers.quantile,
        "lengths": dict(numbers.lengths),
        "rows": "".join(f"{line}\n" for line in lines),
    }


def short(value: float) -> str:
    """Without the zero before the point: a file has hundreds of these."""
    return f"{value:.7g}".replace("0.", ".", 1) if 1e-4 <= abs(value) < 1 else f"{value:.7g}"


def read_table(
    table: Mapping[str, Any], spec: DeviceSpec, where: str
) -> tuple[ProductNumbers, float, ProductRanges, ProductSurface | None, str, str]:
    """What `write_table` wrote, source and date last; InvalidArgumentError names `where` and the key."""
    if not spec.sm_count:
        raise InvalidArgumentError(f"{where}: {spec.name!r} has no sm_count, which products need; give it in its table")
    values = [_number(table, name, unit, where) for name, unit in zip(ProductNumbers._fields, UNITS, strict=True)]
    if min(values[1:]) <= 0 or values[0] < 0:
        raise InvalidArgumentError(f"{where} has a number that is not above 0; calibrate the device again")
    ranges = ProductRanges(*(_range(table, f"range_{name}", where) for name in ProductRanges._fields))
    surface = _surface(table["surface"], spec, f"{where}.surface") if "surface" in table else None
    first = table[ProductNumbers._fields[0]]
    spread = _number(table, "spread", "", where)
    return ProductNumbers(*values), spread, ranges, surface, str(first.get("source", "")), str(first.get("date", ""))


def _get(table: Mapping[str, Any], key: str, where: str) -> Any:  # Any: what TOML holds
    if not isinstance(table, Mapping) or key not in table:
        raise InvalidArgumentError(f"{where} has no {key!r}; calibrate the device again")
    return table[key]


def _number(table: Mapping[str, Any], key: str, unit: Unit, where: str) -> float:
    return read(_get(table, key, where), unit, f"{where}: {key}")


def _range(table: Mapping[str, Any], key: str, where: str) -> tuple[int, int]:
    pair = _get(table, key, where)
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(a, int) and a > 0 for a in pair):
        raise InvalidArgumentError(f"{where}: {key} = {pair!r} must be the least and the greatest size")
    return pair[0], pair[1]


def _surface(table: Mapping[str, Any], spec: DeviceSpec, where: str) -> ProductSurface:
    lengths = {str(name): float(length) for name, length in _get(table, "lengths", where).items()}
    deviation, noise, quantile = (float(_get(table, key, where)) for key in ("deviation", "noise", "quantile"))
    rows, residuals = _rows(str(_get(table, "rows", where)), where)
    try:
        return ProductSurface(rows, residuals, SurfaceNumbers(lengths, deviation, noise, quantile), spec.sm_count)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(f"{where}: its rows contradict each other; calibrate the device again") from None


def _rows(text: str, where: str) -> tuple[ProductRows, Residuals]:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    try:
        m, n, k = (np.array([int(line[i]) for line in lines], dtype=np.int64) for i in range(3))
        residual, variance = (np.array([float(line[i]) for line in lines]) for i in (4, 5))
        layout = tuple("" if line[3] == UNKNOWN_LAYOUT else line[3] for line in lines)
    except (IndexError, ValueError):
        raise InvalidArgumentError(f"{where}: a line of rows is not 'm n k layout residual variance'") from None
    return ProductRows(m, n, k, layout if any(layout) else None), Residuals(residual, variance)
