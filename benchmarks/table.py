"""The table at the end of a run, and the file that later runs are compared with.

Figures have units. A missing peer, floor or promise is an empty cell. A row that the file lacks is new, not slower.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from .rows import Kind, Promise, Row

SLOWER = 1.2  # ours against the file: from this ratio on a row is slower; below it is noise
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))
_COLOURS = {"aim": "green", "must": "yellow", "below": "red"}


def quantity(value: float | None, unit: str) -> str:
    """A number of three digits with a prefixed unit: "1.25 us"; "" for None."""
    if value is None:
        return ""
    factor, prefix = next((p for p in _PREFIXES if abs(value) >= p[0]), _PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}{unit}"


def table(rows: Sequence[Row], *, cpu: bool = False, baseline: Mapping[str, Any] | None = None) -> Table:
    """One line per row, judged by wall or by CPU time; with a baseline also ours against it, by CPU time."""
    clocks = ("CPU", "wall") if cpu else ("wall", "CPU")
    made = Table(title=f"By {clocks[0]} time", title_justify="left")
    made.add_column("row", no_wrap=True)
    for heading in ("ours", "peer", "ratio", f"by {clocks[1]}", "floor", "must", "aim", "verdict"):
        made.add_column(heading, justify="right", no_wrap=True)
    if baseline is not None:
        made.add_column("against baseline", justify="right", no_wrap=True)
    for row in rows:
        cells = [row.case.key, *_cells(row, cpu=cpu)]
        made.add_row(*cells, *([_change(row, baseline)] if baseline is not None else []))
    return made


def _cells(row: Row, *, cpu: bool) -> list[str]:
    unit, measured, promise = row.case.unit, row.measured, row.case.promise
    verdict = row.verdict(cpu=cpu)
    colour = _COLOURS.get(verdict)
    return [
        quantity(measured.ours.by(cpu=cpu), unit),
        quantity(measured.peer.by(cpu=cpu), unit) if measured.peer else "",
        _ratio(row, cpu=cpu),
        _ratio(row, cpu=not cpu) if measured.ours.cpu is not None else "",
        quantity(measured.floor, unit),
        _bound(promise, promise.must, unit) if promise else "",
        _bound(promise, promise.aim, unit) if promise else "",
        f"[{colour}]{verdict}[/]" if colour else verdict,
    ]


def _ratio(row: Row, *, cpu: bool) -> str:
    promise = row.case.promise
    ratio = row.ratio(cpu=cpu)
    if ratio is None:
        return ""
    if promise is not None and promise.kind is Kind.LIMIT:
        return quantity(ratio, row.case.unit)
    return f"{ratio:.3g}{'x' if row.is_speed_up else ''}"


def _bound(promise: Promise, bound: float | None, unit: str) -> str:
    if bound is None:
        return ""
    if promise.kind is Kind.LIMIT:
        return quantity(bound, unit)
    return f"{bound:.3g}{'x' if promise.kind is Kind.SPEED_UP else ''}"


def _change(row: Row, baseline: Mapping[str, Any]) -> str:  # JSON
    change = change_since(row, baseline)
    if change is None:
        return "new"
    text = f"{change:.2f}"
    return f"[red]{text} slower[/]" if change >= SLOWER else text


def change_since(row: Row, baseline: Mapping[str, Any]) -> float | None:  # JSON
    """Ours now over ours then, by CPU time where both have it; None for a row that the baseline lacks."""
    then = baseline.get(row.case.key)
    if then is None:
        return None
    before = then["ours_cpu"] or then["ours"]
    return row.measured.ours.by(cpu=True) / float(before) if before else None


def slower(rows: Sequence[Row], baseline: Mapping[str, Any]) -> list[str]:  # JSON
    """Keys of the rows that are slower than in the baseline."""
    return [row.case.key for row in rows if (change_since(row, baseline) or 0) >= SLOWER]


def save(rows: Sequence[Row], path: Path) -> None:
    """Writes the figures; `load` reads them."""
    path.write_text(json.dumps({row.case.key: _record(row) for row in rows}, indent=1) + "\n")


def load(path: Path) -> dict[str, Any]:  # JSON
    """The figures of an earlier run, by row."""
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def _record(row: Row) -> dict[str, float | str | None]:
    ours, peer = row.measured.ours, row.measured.peer
    return {
        "unit": row.case.unit,
        "ours": ours.value,
        "ours_cpu": ours.cpu,
        "peer": peer.value if peer else None,
        "peer_cpu": peer.cpu if peer else None,
        "ratio": row.ratio(),
        "floor": row.measured.floor,
        "verdict": row.verdict(),
    }
