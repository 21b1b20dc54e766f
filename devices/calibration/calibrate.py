"""Calibrates a device: measurements -> fitted models, how far they are off on rows they have not seen, and a file.

    report = calibrate([Path("ops.csv"), Path("all_reduce.log")], "H100-SXM", date="2026-11-23")
    report.parts[0].mape_percent, report.parts[0].datasheet_percent       5.1, 18.4
    Path("my_h100.toml").write_text(report.text())

Each part (`parts.py`) is fitted to the rows of the files that have such rows, and its numbers name those files as their
source. Nothing depends on chance or time, so the same files give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from attrs import frozen

from ...errors import InvalidArgumentError
from ..spec import DeviceSpec
from ..timing.fits.memory_bound import ASSUMED_SPREAD, MemoryBoundModel, MemoryNumbers
from .entry import DeviceEntry, entry_of
from .fitting.layers import ATTENTION, GROUPED
from .layer_parts import fit_layer_part
from .parts import PartReport, fit_collective_part, fit_memory_part, fit_product_part
from .sources.measurements import GivenMemory, Measurements, joined
from .sources.reading import read_source
from .toml_text import toml_text

INSTALL = "pip install 'partita[calibrate]'"


@frozen
class CalibrationReport:
    """What was used, refused and fitted."""

    entry: DeviceEntry
    measurements: Measurements
    parts: tuple[PartReport, ...]

    def text(self) -> str:
        """The calibration file: the entry of the device with its fits, as TOML."""
        needed("tomli_w")
        fits = {part.name: part.model.to_table() for part in self.parts}
        return toml_text({**self.entry.table, "fits": fits})


def needed(module: str) -> Any:  # Any: a module without types
    """A module that only calibrating needs; InvalidArgumentError that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidArgumentError(f"calibrating needs the package {module}; install it with {INSTALL}") from None


def calibrate(
    sources: Sequence[Path],
    device: str,
    *,
    cluster: Path | None = None,
    date: str | None = None,
    collective: str | None = None,
    graph: Path | None = None,
) -> CalibrationReport:
    """The models of a device fitted to all rows of the sources.

    `collective` says what the logs of nccl-tests ran where they do not; `graph` is the GraphDef that traces without
    graphs are of. Raises InvalidArgumentError for wrong files, too few rows, a device that is not in the data, and
    where a package of the extra "calibrate" is missing.
    """
    needed("tomli_w")  # now: not after minutes of fitting
    on = _checked_date(date or datetime.now(UTC).date().isoformat())
    entry = entry_of(device, cluster, on)
    read = {path: read_source(path, entry.names, collective, entry.spec, graph) for path in sources}
    rows = joined(read.values())
    parts = tuple(_parts(rows, read, entry.spec, on))
    if not parts:
        names = ", ".join(path.name for path in sources)
        raise InvalidArgumentError(f"{names}: no row can be used; the first was refused: {_first_refused(rows)}")
    return CalibrationReport(entry, rows, parts)


def _parts(rows: Measurements, read: Mapping[Path, Measurements], spec: DeviceSpec, date: str) -> Iterator[PartReport]:
    """The parts that there are rows for."""

    def source(field: str) -> str:
        return ", ".join(path.name for path, measured in read.items() if getattr(measured, field))

    if rows.products:
        yield fit_product_part(rows.products, spec, source("products"), date)
    if rows.moves and rows.memory:
        raise InvalidArgumentError(
            f"{source('moves')} has times of memory-bound ops, {source('memory')} gives their numbers; leave one out"
        )
    if rows.moves:
        yield fit_memory_part(rows.moves, spec, source("moves"), date)
    if rows.memory:
        yield _given(rows.memory, source("memory"), date)
    if rows.attentions:
        yield fit_layer_part("attention", ATTENTION, rows.attentions, spec, source("attentions"), date)
    if rows.grouped:
        yield fit_layer_part("grouped", GROUPED, rows.grouped, spec, source("grouped"), date)
    if rows.collectives:
        yield fit_collective_part(rows.collectives, spec, source("collectives"), date)


def _given(given: Sequence[GivenMemory], source: str, date: str) -> PartReport:
    """Numbers of memory-bound ops as a source gives them; their spread is assumed."""
    said = f"{source}: as SimuMax gives it for its machine; 30 us an op include its launch"
    kinds = {
        each.kind: MemoryNumbers(each.bandwidth_bytes_per_s, each.efficiency, each.constant_ns, ASSUMED_SPREAD)
        for each in given
    }
    model = MemoryBoundModel(kinds, said, date)
    return PartReport("memory_bound", sum(each.rows for each in given), None, (), (), model)


def _checked_date(text: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError:
        raise InvalidArgumentError(f"date {text!r} must be written YYYY-MM-DD, as in 2026-01-31") from None


def _first_refused(rows: Measurements) -> str:
    return f"{rows.refused[0].where}: {rows.refused[0].reason}" if rows.refused else "there are none"
