"""Validation: what is predicted from what, and that a fit sees nothing of the rows it predicts but their keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation.maxmin import MAXMIN_STAR
from partita.devices.calibration.validation.predictions import write_predictions
from partita.devices.calibration.validation.report import document, notes
from partita.devices.calibration.validation.validation import cross_validate, validate
from partita.devices.calibration.validation.workers import run_jobs
from partita.errors import InvalidArgumentError
from partita.graph import Progress
from tests.devices.calibration.validation.folders import folder, products, star

STARS = Path(__file__).parents[2] / "timing" / "hardware" / "data"


def written(tmp_path: Path, fit: Path, test: Path) -> dict[str, str]:
    """The files of predictions of a validation, by name."""
    paths = write_predictions(tmp_path / "predicted", validate(fit, test).predictions)
    return {path.name: path.read_text() for path in paths}


def test_measured_cells_reach_no_fit(tmp_path: Path) -> None:
    """The files of predictions are the same bytes whether or not the test has times; errors are there or null."""
    fit = folder(tmp_path / "fit", gemm_bf16=products(start=0, step=2))
    full = folder(tmp_path / "full", gemm_bf16=products(start=1, step=2), maxmin_star_a=star())
    bare = folder(tmp_path / "bare", gemm_bf16=products(start=1, step=2, empty=True), maxmin_star_a=star(empty=True))
    assert written(tmp_path, fit, full) == written(tmp_path, fit, bare)
    for entry in document(validate(fit, bare))["sets"]:
        assert entry["mape_percent"] is entry["worst"] is entry["null_models"][0]["mape_percent"] is None
    entries = document(validate(fit, full))["sets"]
    assert [entry["set"] for entry in entries] == ["gemm_bf16", "maxmin_star"]
    assert [entry["in_sample"] for entry in entries] == [False, False]
    assert [entry["fitted_on_rows"] for entry in entries] == [50, 0]
    assert entries[1]["max_percent"] < 1e-9


def test_rows_that_are_fitted_to_are_said(tmp_path: Path) -> None:
    """All of them, some of them, and the same products with other times, which are other measurements."""
    fit = folder(tmp_path / "fit", gemm_bf16=products(["a100_sxm"]))
    assert "50 of 50 rows" in notes(validate(fit, fit))[0]
    some = folder(tmp_path / "some", gemm_bf16=products(["a100_sxm"], step=5) + "a100_sxm,77,77,77,1\n")
    assert document(validate(fit, some))["sets"][0]["in_sample"] is True
    assert "in-sample, 10 of 11 rows" in notes(validate(fit, some))[0]
    other = folder(tmp_path / "other", gemm_bf16="system,m,n,k,latency_ms\na100_sxm,16,16,128,9\n")
    assert document(validate(fit, other))["sets"][0]["in_sample"] is False


def test_systems_without_rows_to_fit_to(tmp_path: Path) -> None:
    """One of the catalog is transferred from its nearest neighbour, one of nobody is unknown; rows keep their order."""
    fit = folder(tmp_path / "fit", gemm_bf16=products(["a100_sxm"]))
    text = "k,n,m,system,latency_ms\n64,32,16,nobodys,1\n2048,1024,512,h200_sxm,0.01\n64,32,16,a100_sxm,0.005\n"
    test = folder(tmp_path / "test", gemm_bf16=text)
    lines = written(tmp_path, fit, test)["gemm_bf16.csv"].splitlines()
    assert lines[0] == "k,n,m,system,predicted_latency_ms,low_latency_ms,high_latency_ms,provenance"
    assert lines[1] == "64,32,16,nobodys,,,,unknown"
    assert lines[2].startswith("2048,1024,512,h200_sxm,0.")
    assert lines[2].endswith(",transferred from a100_sxm")
    low, high = (float(cell) for cell in lines[2].split(",")[5:7])
    assert high / low > np.exp(0.7)
    assert "nothing is known of the devices of 1 of 3 rows" in notes(validate(fit, test))[0]
    only = folder(tmp_path / "only", gemm_bf16="system,m,n,k,latency_ms\nnobodys,1,1,1,1\n")
    with pytest.raises(InvalidArgumentError, match=r"gemm_bf16\.csv.*2.*'nobodys'.*catalog"):
        validate(fit, only)


def test_a_system_that_the_catalog_lacks(tmp_path: Path) -> None:
    """Its own rows give three numbers, without a datasheet to compare with."""
    fit = folder(tmp_path / "fit", gemm_bf16=products(["mine"]))
    entry = document(validate(fit, fit))["sets"][0]
    assert "roofline of three fitted numbers" in entry["worst"]["provenance"]
    assert entry["null_models"] == [
        {"name": "roofline_3", "mape_percent": entry["mape_percent"]},
        {"name": "datasheet", "mape_percent": None},
    ]


def test_cross_validation(tmp_path: Path) -> None:
    """Every row is predicted from other rows, the same way each time."""
    data = folder(tmp_path / "data", gemm_bf16=products(["a100_sxm"]), maxmin_star_a=star(), notes="nothing")
    (data / "more").mkdir()
    once, again = cross_validate(data, 5), cross_validate(data, 5)
    assert document(once) == document(again)
    gemm, flows = document(once)["sets"]
    assert (gemm["rows"], gemm["fitted_on_rows"], gemm["in_sample"]) == (50, 40, False)
    assert (flows["rows"], flows["fitted_on_rows"]) == (3, 0)
    assert document(once)["left_out"][-2:] == ["more", "notes.csv"]
    with pytest.raises(InvalidArgumentError, match="1 folds"):
        cross_validate(data, 1)


def test_sets_that_a_folder_lacks(tmp_path: Path) -> None:
    """They are left out by name; flows need no fit; no set at all is an error."""
    empty, stars = folder(tmp_path / "empty"), folder(tmp_path / "stars", maxmin_star_a=star())
    validation = validate(empty, stars)
    assert [part.of.name for part in validation.parts] == ["maxmin_star"]
    assert "gemm_bf16" in document(validation)["left_out"]
    with pytest.raises(InvalidArgumentError, match=r"no set of measurements.*gemm_bf16.csv"):
        validate(stars, empty)


def test_workers_say_the_same(tmp_path: Path) -> None:
    """Jobs in processes of their own answer as jobs here do, in the order of the jobs; a failure is raised."""
    rows = MAXMIN_STAR.read(sorted(folder(tmp_path / "d", maxmin_star_a=star(), maxmin_star_b=star()).iterdir()), True)
    short = MAXMIN_STAR.jobs(None, rows)
    done: list[Progress] = []
    answers = run_jobs([job._replace(is_long=True) for job in short], done.append)
    for ours, theirs in zip(answers, run_jobs(short, done.append), strict=True):
        assert ours.columns["finish_s"].value.tobytes() == theirs.columns["finish_s"].value.tobytes()
    assert done == [Progress("fitting and predicting", number, 2, "jobs") for number in (1, 2, 1, 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "maxmin_star_a.json.*1"),
        ("{}", "no 'links'"),
        ('{"links": [], "flows": [{"src": 1, "dst": 0, "bytes": 1, "start_s": 0}]}', "maxmin_star_a.json: no 1"),
        ('{"links": 5, "flows": []}', "maxmin_star_a.json"),
        (star().replace("2.000002", "-1"), "flow 0: finish_s = '-1' must be a number above 0"),
        (star().replace("1000000000.0", "0", 1), "maxmin_star_a.json: link 'up 0'"),
    ],
)
def test_wrong_stars(text: str, words: str, tmp_path: Path) -> None:
    """The error has the file and what is wrong."""
    with pytest.raises(InvalidArgumentError, match=words):
        validate(folder(tmp_path / "fit"), folder(tmp_path / "test", maxmin_star_a=text))


def test_stars_of_simgrid(tmp_path: Path) -> None:
    """All flows end when SimGrid says, to 1e-9."""
    for path in STARS.glob("maxmin_star_*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert document(validate(tmp_path, tmp_path))["sets"][0]["max_percent"] < 1e-7
