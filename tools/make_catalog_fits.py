"""Fits models of the catalog's devices to a folder of measurements, and writes the files of `devices/catalog/fits`.

    python tools/make_catalog_fits.py DATA_DIR [--date YYYY-MM-DD] [--only PART ...]

DATA_DIR has gemm_bf16.csv, collectives_nccl.csv with collectives_nccl_versions.csv, and allreduce_vtrain.csv, whose
systems are names or aliases of the catalog, of `LAYERS_OF` attention_b200.csv and grouped_gemm_b200.csv, and files of
measured kernels (`KERNEL_FILES`), those that are there. Collectives of all systems of a file are fitted together, since
they share a covariance; so are kernels of a family. Of allreduce_vtrain.csv devices get a fit that have no other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.devices.calibration.fitting.layers import ATTENTION, GROUPED, fit_layers
from partita.devices.calibration.fitting.products import fit_products
from partita.devices.calibration.kernel_files import KERNEL_FILES
from partita.devices.calibration.sources.layer_tables import in_columns
from partita.devices.calibration.sources.measurements import STATED_PEAK_FLOPS_PER_S, Measurements, joined
from partita.devices.calibration.sources.reading import read_source
from partita.devices.calibration.tables import ColumnSpec, read_table
from partita.devices.calibration.toml_text import toml_text
from partita.devices.calibration.validation.allreduce import ALLREDUCE_VTRAIN, allreduce_columns
from partita.devices.calibration.validation.collective_answers import fit_curves
from partita.devices.calibration.validation.collectives import COLLECTIVES_NCCL, nccl_columns
from partita.devices.catalog import aliases_of, device_names, device_spec
from partita.devices.timing.fits.kernels.kernel_table import write_model
from partita.devices.timing.fits.products import Products

CATALOG = Path(__file__).parents[1] / "devices" / "catalog"
FILES = ("gemm_bf16.csv", "collectives_nccl.csv")
LAYERS_OF, LAYER_FILES = "B200-SXM", ("attention_b200.csv", "grouped_gemm_b200.csv")
LEAST_ROWS = 20  # of products


def measurements(folder: Path, device: str) -> Measurements:
    """All rows of one device."""
    names = (device, *aliases_of(device))
    have = [
        folder / name
        for name in FILES
        if set(read_table(folder / name, [ColumnSpec("system")]).texts("system")) & {*names}
    ]
    have += [folder / name for name in LAYER_FILES] if device == LAYERS_OF else []
    return joined(read_source(path, names) for path in have)


def product_table(rows: Measurements, device: str, date: str) -> dict[str, Any]:
    """The table `[fits.products]`, nothing with too few rows."""
    if len(rows.products) < LEAST_ROWS:
        return {}
    timed = sorted(rows.products)
    m, n, k, batch = (np.array([row[i] for row in timed]) for i in range(4))
    time_ns = np.array([row.time_ns for row in timed])
    products = Products(m, n, k, batch, tuple(row.layout for row in timed))
    model = fit_products(products, time_ns, device_spec(device), source=FILES[0], date=date)
    return {"products": model.to_table()}


def layer_tables(rows: Measurements, date: str) -> dict[str, Any]:
    """The tables `[fits.attention]` and `[fits.grouped]`, those of which there are rows."""
    sorts = (("attention", ATTENTION, rows.attentions), ("grouped", GROUPED, rows.grouped))
    tables: dict[str, Any] = {}
    for (part, fit, measured), file in zip(sorts, LAYER_FILES, strict=True):
        if measured:
            timed, source = sorted(measured), f"SimuMax 4dcaae5 (Apache-2.0), {file}"
            layers, share = in_columns(timed, fit.model.LAYERS), np.array([row.share for row in timed])
            tables[part] = fit_layers(fit, layers, share, STATED_PEAK_FLOPS_PER_S, source=source, date=date).to_table()
    return tables


def collective_tables(folder: Path, date: str) -> dict[str, dict[str, Any]]:
    """The table `[fits.collectives]` of each device."""
    tables: dict[str, dict[str, Any]] = {}
    sets = ((COLLECTIVES_NCCL, nccl_columns), (ALLREDUCE_VTRAIN, allreduce_columns))
    for of, columns in sets:
        path = folder / of.files
        rows = columns(of.read([path], False))
        for system, model in fit_curves(rows, path.name, date).items():
            tables.setdefault(device_spec(system).name, {"collectives": model.to_table()})
    return tables


def kernel_tables(folder: Path, date: str, only: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The tables of families of kernels, by device and part; of those asked for alone, where any is."""
    tables: dict[str, dict[str, Any]] = {}
    for of in KERNEL_FILES:
        path = folder / of.file
        if path.exists() and (not only or of.family.PART in only):
            for system, model in of.models(of.read([path], False), of.file, date).items():
                tables.setdefault(device_spec(system).name, {})[of.family.PART] = write_model(model)
    return tables


def folder_of(device: str) -> Path:
    """The folder of the fits of a device of the catalog."""
    line = f'name = "{device}"'
    file = next(path for path in sorted(CATALOG.glob("device_*.toml")) if line in path.read_text("utf-8").splitlines())
    return CATALOG / "fits" / file.stem.removeprefix("device_")


def write_part(device: str, part: str, table: dict[str, Any]) -> None:
    """Writes one file, and prints its size."""
    path = folder_of(device) / f"{part}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(toml_text({"fits": {part: table}}), "utf-8", newline="\n")
    print(f"{path.relative_to(CATALOG)}: {path.stat().st_size} bytes")


def main() -> None:
    """Writes the files, of all parts or of those asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--date", default="2026-11-29")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="a part of the fits; repeatable")
    arguments = parser.parse_args()
    folder, date, only = arguments.folder, arguments.date, arguments.only
    tables = kernel_tables(folder, date, only)
    if not only or {*only} - {of.family.PART for of in KERNEL_FILES}:
        of_device = {name: rows for name in device_names() if (rows := measurements(folder, name)).used}
        collectives = collective_tables(folder, date)
        of_device |= {name: Measurements() for name in collectives if name not in of_device}
        for name, rows in of_device.items():
            tables.setdefault(name, {}).update(
                product_table(rows, name, date) | layer_tables(rows, date) | collectives.get(name, {})
            )
    for name, parts in sorted(tables.items()):
        for part, table in parts.items():
            if not only or part in only:
                write_part(name, part, table)


if __name__ == "__main__":
    main()
