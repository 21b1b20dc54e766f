"""A model of a family of kernels as a table of a calibration file, and back.

    [fits.decode_attention."bfloat16/bfloat16"]
    floor = { value = "2310 ns", source = "attention_generation.csv", date = "2026-11-29" }      and the other numbers
    spread, range_batch, ...
    [fits.decode_attention."bfloat16/bfloat16".surface]
    deviation, noise, quantile, lengths
    rows = "texts counts residual variance", a row a line, columns in the family's order

Numbers stand with the digits that the fit rounded them to, so that a file gives the same predictions as the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .....errors import InvalidArgumentError
from ....spec import DeviceSpec
from ..layers import date_of, read_numbers, read_ranges, write_numbers, write_ranges
from ..product_table import short
from ..sourced import SourcedTable, Unit, read, write
from ..surface import Residuals, Surface, SurfaceNumbers
from .kernel_model import GroupFit, KernelModel, KernelSurface, R
from .kernel_rows import KernelRows

SPREADS = ("spread", "launch_spread")


def write_model(model: KernelModel[Any]) -> dict[str, Any]:  # Any: rows of every family; TOML
    """The table of a model, its numbers with their source and date."""
    return {name: _group_table(fit, model) for name, fit in model.groups.items()}


def _units(family: type[KernelRows]) -> dict[str, Unit]:
    return {number.name: number.unit for number in family.NUMBERS}


def _group_table(fit: GroupFit, model: KernelModel[Any]) -> dict[str, Any]:
    table: dict[str, Any] = write_numbers(fit.numbers, _units(model.family), source=model.source, date=model.date)
    table["spread"] = write(fit.spread, "", source=model.source, date=model.date)
    if fit.launch_spread:
        table["launch_spread"] = write(fit.launch_spread, "", source=model.source, date=model.date)
    table |= write_ranges(fit.ranges)
    return table if fit.surface is None else table | {"surface": _surface_table(fit.surface)}


def _surface_table(kept: KernelSurface[Any]) -> dict[str, Any]:
    rows, surface = kept.rows, kept.surface
    columns = [*rows.texts.values(), *(column.tolist() for column in rows.counts.values())]
    numbers = (map(short, column) for column in surface.rows)
    lines = zip(*columns, *numbers, strict=True)
    return {
        "deviation": surface.numbers.deviation,
        "noise": surface.numbers.noise,
        "quantile": surface.numbers.quantile,
        "lengths": dict(surface.numbers.lengths),
        "rows": "".join(f"{' '.join(map(str, line))}\n" for line in lines),
    }


def read_model(family: type[R], table: Mapping[str, Any], spec: DeviceSpec, where: str) -> KernelModel[R]:
    """The model that `write_model` wrote; InvalidArgumentError names `where` and what is wrong."""
    if not table:
        raise InvalidArgumentError(f"{where} has no group; calibrate the device again")
    groups = {name: _read_group(family, SourcedTable(inner, f"{where}.{name}"), spec) for name, inner in table.items()}
    first = next(iter(table.values()))[family.NUMBERS[0].name]
    return KernelModel(family, spec, groups, str(first.get("source", "")), date_of(first))


def _read_group(family: type[KernelRows], table: SourcedTable, spec: DeviceSpec) -> GroupFit:
    units = _units(family)
    ranged = [key.removeprefix("range_") for key in table.table if key.startswith("range_")]
    table.only([*units, *SPREADS, *(f"range_{name}" for name in ranged), "surface"])
    numbers = read_numbers(SourcedTable({k: v for k, v in table.table.items() if k in units}, table.where), units)
    spread = read(table.table.get("spread"), "", f"{table.where}: spread")
    launch = table.table.get("launch_spread")
    launch_spread = 0.0 if launch is None else read(launch, "", f"{table.where}: launch_spread")
    surface = _read_surface(family, table.inner("surface"), spec) if "surface" in table.table else None
    return GroupFit(tuple(numbers), spread, read_ranges(table, ranged), surface, launch_spread)


def _read_surface(family: type[R], table: SourcedTable, spec: DeviceSpec) -> KernelSurface[R]:
    inner, where = table.table, table.where
    for key in ("deviation", "noise", "quantile", "lengths"):
        if key not in inner:
            raise InvalidArgumentError(f"{where} has no {key!r}; calibrate the device again")
    lengths = {str(name): float(length) for name, length in inner["lengths"].items()}
    numbers = SurfaceNumbers(lengths, *(float(inner[key]) for key in ("deviation", "noise", "quantile")))
    rows, residuals = _read_rows(family, table.text("rows"), where)
    try:
        return KernelSurface(rows, Surface(rows.features(spec), residuals, numbers))
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(f"{where}: its rows contradict each other; calibrate the device again") from None


def _read_rows(family: type[R], text: str, where: str) -> tuple[R, Residuals]:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    names = [*family.TEXTS, *family.COUNTS]
    try:
        columns = dict(zip([*names, "residual", "variance"], zip(*lines, strict=True), strict=True))
        counts = {name: np.array([int(cell) for cell in columns[name]], dtype=np.int64) for name in family.COUNTS}
        residuals = Residuals(*(np.array([float(c) for c in columns[name]]) for name in ("residual", "variance")))
    except ValueError:
        raise InvalidArgumentError(f"{where}: a line of rows is not '{' '.join(names)} residual variance'") from None
    return family({name: columns[name] for name in family.TEXTS}, counts), residuals
