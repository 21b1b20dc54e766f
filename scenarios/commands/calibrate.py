"""`partita calibrate`: fits the models of a device to measurements and writes a calibration file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...devices.calibration.calibrate import CalibrationReport, calibrate as calibrate_device
from ...devices.calibration.parts import FittedNumber, PartReport
from .failure import configuring
from .outputs import check_outputs
from .screen import Screen

_NULL_MODELS = ("datasheet", "roofline_3", "log_log")


def calibrate(
    sources: Sequence[Path],
    device: str,
    cluster: Path | None,
    output: Path,
    date: str | None,
    collective: str | None,
    graph: Path | None,
    as_json: bool,
) -> None:
    """Prints rows, numbers and errors and writes the file; ConfigurationError for inputs that cannot be used."""
    screen = Screen()
    inputs: dict[str, Path | None] = {f"SOURCE {i}": path for i, path in enumerate(sources, 1)}
    check_outputs({"--write": output}, {**inputs, "--cluster": cluster, "--graph": graph})
    with configuring(), screen.working("fitting"):
        report = calibrate_device(sources, device, cluster=cluster, date=date, collective=collective, graph=graph)
        text = report.text()
    with configuring("--write"):
        output.write_text(text, "utf-8", newline="\n")
    if as_json:
        screen.json(_document(report, output))
    else:
        _show(report, output, screen)


def _errors(part: PartReport) -> list[str]:
    nulls = {null.name: null.mape_percent for null in part.null_models}
    errors = [part.mape_percent, *(nulls.get(name) for name in _NULL_MODELS)]
    return ["-" if error is None else f"{error:.1f}" for error in errors]


def _interval(number: FittedNumber) -> list[str]:
    if number.low is None or number.high is None:
        return [f"the {number.bound} that is searched", ""]
    return [f"{number.low:.6g}", f"{number.high:.6g}"]


def _document(report: CalibrationReport, output: Path) -> dict[str, object]:
    return {
        "version": 1,
        "device": report.entry.spec.name,
        "rows_used": report.measurements.used,
        "rows_refused": [row._asdict() for row in report.measurements.refused],
        "fits": [_part(part) for part in report.parts],
        "written": str(output),
    }


def _part(part: PartReport) -> dict[str, object]:
    return {
        "name": part.name,
        "rows": part.rows,
        "cross_validated_mape_percent": part.mape_percent,
        "datasheet_mape_percent": part.datasheet_percent,
        "null_models": [null._asdict() for null in part.null_models],
        "numbers": [number._asdict() for number in part.numbers],
    }


def _show(report: CalibrationReport, output: Path, screen: Screen) -> None:
    refused = report.measurements.refused
    screen.line(f"{report.entry.spec.name}: {report.measurements.used} rows used, {len(refused)} refused")
    for row in refused:
        screen.line(f"  refused {row.where}: {row.reason}")
    screen.table(
        ["fit", "rows", "error %", *(f"{name} %" for name in _NULL_MODELS)],
        [[part.name, str(part.rows), *_errors(part)] for part in report.parts],
    )
    screen.line("error: mean |predicted / measured - 1| of rows that the fit has not seen, in five folds; so are")
    screen.line("roofline_3 (three fitted numbers) and log_log (interpolation in log size); datasheet: nothing fitted")
    numbers = [
        [f"{part.name}.{n.name}", f"{n.value:.6g}", *_interval(n)] for part in report.parts for n in part.numbers
    ]
    if numbers:
        screen.table(["number", "value", "low", "high"], numbers)
        screen.line("low, high: 80 % interval of a jackknife over the folds, in log space")
    screen.line(f"written: {output}")
