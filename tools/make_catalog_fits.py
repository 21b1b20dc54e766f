"""Fits models of the catalog's devices to a folder of measurements, and rewrites the tables `[fits]` of their files.

    python tools/make_catalog_fits.py DATA_DIR [--date YYYY-MM-DD]

DATA_DIR has gemm_bf16.csv and collectives_nccl.csv, whose systems are names or aliases of the catalog, and of
`LAYERS_OF` attention_b200.csv and grouped_gemm_b200.csv. What stands before `[fits` in a file stays as it is.
Collectives of all systems are fitted together, since they share a covariance.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from partita.devices.calibration.fitting.collectives import CollectiveRows, fit_collectives
from partita.devices.calibration.fitting.layers import ATTENTION, GROUPED, fit_layers
from partita.devices.calibration.fitting.products import fit_products
from partita.devices.calibration.sources.layer_tables import in_columns
from partita.devices.calibration.sources.measurements import STATED_PEAK_FLOPS_PER_S, Measurements, joined
from partita.devices.calibration.sources.reading import read_source
from partita.devices.calibration.tables import ColumnSpec, read_table
from partita.devices.calibration.toml_text import toml_text
from partita.devices.catalog import aliases_of, device_names, device_spec
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


def collective_tables(of_device: dict[str, Measurements], date: str) -> dict[str, dict[str, Any]]:
    """The table `[fits.collectives]` of each device."""
    rows = [(name, row) for name, measured in of_device.items() for row in sorted(measured.collectives)]
    columns = CollectiveRows(
        [name for name, _ in rows],
        [row.kind for _, row in rows],
        np.array([row.ranks for _, row in rows]),
        np.array([row.size_bytes for _, row in rows]),
        np.array([row.time_ns for _, row in rows]),
    )
    models = fit_collectives(columns, source=FILES[1], date=date)
    return {name: {"collectives": model.to_table()} for name, model in models.items()}


def file_of(device: str) -> Path:
    """The file of a device in the catalog."""
    line = f'name = "{device}"'
    return next(path for path in sorted(CATALOG.glob("device_*.toml")) if line in path.read_text("utf-8").splitlines())


def main() -> None:
    """Rewrites the files and prints their sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--date", default="2026-11-23")
    arguments = parser.parse_args()
    of_device = {name: measurements(arguments.folder, name) for name in device_names()}
    collectives = collective_tables(of_device, arguments.date)
    for name, rows in of_device.items():
        if not rows.used:
            continue
        fits = (
            product_table(rows, name, arguments.date) | layer_tables(rows, arguments.date) | collectives.get(name, {})
        )
        path = file_of(name)
        kept = re.split(r"^\[fits", path.read_text("utf-8"), maxsplit=1, flags=re.MULTILINE)[0].rstrip("\n")
        path.write_text(f"{kept}\n\n{toml_text({'fits': fits})}", "utf-8", newline="\n")
        print(f"{path.name}: {rows.used} rows, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
