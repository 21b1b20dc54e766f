"""`partita validate`: how far predictions are off on measurements that the fits have not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...devices.calibration.validation.predictions import check_folder_of_predictions, write_predictions
from ...devices.calibration.validation.report import document, notes
from ...devices.calibration.validation.sets import SETS
from ...devices.calibration.validation.validation import Validation, cross_validate, validate as validate_folders
from ..planners.measured.training_sets import TRAINING_SETS
from ..scaling.cnn_scaling import CNN_SCALING
from ..serving.serving_set import LLM_SERVING
from .failure import ConfigurationError, configuring
from .outputs import check_folder
from .screen import Screen

_SETS = (*SETS, *TRAINING_SETS, CNN_SCALING, LLM_SERVING)
_FIGURES = ("mape", "median", "p90", "max", "bias", "coverage80")


def validate(fit: Path, test: Path | None, folds: int | None, predictions: Path | None, as_json: bool) -> None:
    """Prints the errors of predictions; ConfigurationError for folders and files that cannot be used."""
    screen = Screen()
    if (test is None) == (folds is None):
        raise ConfigurationError("give either --test DIR or --cross-validate K beside --fit DIR")
    if predictions is not None:
        check_folder(predictions, "--predictions")
        with configuring("--predictions"):
            check_folder_of_predictions(predictions, [fit, *([test] if test else [])], _SETS)
    with configuring(), screen.working("fitting and predicting") as on_progress:
        validation = (
            validate_folders(fit, test, on_progress, _SETS)
            if test is not None
            else cross_validate(fit, folds or 0, on_progress, _SETS)
        )
    if predictions is not None:
        with configuring("--predictions"):
            write_predictions(predictions, validation.predictions)
    if as_json:
        screen.json(document(validation))
    else:
        _show(validation, screen)


def _show(validation: Validation, screen: Screen) -> None:
    report = document(validation)
    entries = report["sets"]
    nulls = list(dict.fromkeys(null["name"] for entry in entries for null in entry["null_models"]))
    rows = [
        [
            entry["set"],
            entry["part"] or "",
            f"{entry['rows']:,}",
            f"{entry['fitted_on_rows']:,}",
            *(_figure(entry[f"{name}_percent"]) for name in _FIGURES),
            *(_figure(_null(entry, name)) for name in nulls),
        ]
        for entry in entries
    ]
    screen.table(
        ["set", "part", "rows", "fitted on", "MAPE %", "median", "p90", "max", "bias", "interval holds", *nulls],
        rows,
        left=2,
    )
    screen.line(
        "MAPE: mean of |predicted / measured - 1|; bias: mean of predicted / measured - 1; all figures in percent"
    )
    screen.line("interval holds: share of measurements inside the 80 % intervals; last columns: MAPE of null models")
    _show_breakdown(entries, screen)
    for entry in entries:
        if entry["worst"] is not None:
            values = ", ".join(f"{key} {value}" for key, value in entry["worst"].items())
            screen.line(f"worst of {_name(entry)}: {values}")
    for note in notes(validation):
        screen.line(f"note: {note}")
    for name, reason in validation.left_out.items():
        screen.line(f"left out: {name}: {reason}")


def _show_breakdown(entries: list[dict[str, Any]], screen: Screen) -> None:  # Any: JSON
    rows = [
        [_name(entry), column, name, f"{figures['rows']:,}", _figure(figures["mape_percent"])]
        for entry in entries
        for column, table in entry["by"].items()
        for name, figures in table.items()
    ]
    if rows:
        screen.line()
        screen.table(["set", "by", "", "rows", "MAPE %"], rows, left=3)
    screen.line()


def _name(entry: dict[str, Any]) -> str:
    return f"{entry['set']} ({entry['part']})" if entry["part"] else str(entry["set"])


def _null(entry: dict[str, Any], name: str) -> float | None:
    return next((null["mape_percent"] for null in entry["null_models"] if null["name"] == name), None)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 0.005 or value == 0 else f"{value:.0e}"
