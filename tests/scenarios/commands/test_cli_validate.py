"""`partita validate`: the report in both forms, files of predictions, and one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

from tests.devices.calibration.validation.folders import folder, products, star
from tests.scenarios.command_line import CommandLine, assert_one_clear_line

ENTRY = ["set", "part", "rows", "fitted_on_rows", "in_sample", "mape_percent", "median_percent", "p90_percent"]
ENTRY += ["max_percent", "bias_percent", "coverage80_percent", "worst", "by", "labels", "rankings", "null_models"]
ENTRY += ["published"]


def test_the_document(partita: CommandLine, tmp_path: Path) -> None:
    """Its keys are those that programs rely on; the same call prints the same bytes."""
    fit = folder(tmp_path / "fit", gemm_bf16=products(step=2), notes="x")
    test = folder(tmp_path / "test", gemm_bf16=products(start=1, step=2), maxmin_star_a=star())
    text = partita.done("validate", "--fit", fit, "--test", test, "--json")
    report = json.loads(text)
    assert list(report) == ["version", "sets", "left_out"]
    assert report["version"] == 1
    gemm, flows = report["sets"]
    assert list(gemm) == list(flows) == ENTRY
    assert gemm["by"] == {"system": {name: gemm["by"]["system"][name] for name in ("a100_sxm", "h100_sxm")}}
    assert list(gemm["by"]["system"]["a100_sxm"]) == ["rows", "mape_percent"]
    assert [null["name"] for null in gemm["null_models"]] == ["roofline_3", "datasheet"]
    assert "notes.csv" in report["left_out"]
    assert partita.done("validate", "--fit", fit, "--test", test, "--json") == text


def test_the_table_and_the_files(partita: CommandLine, tmp_path: Path) -> None:
    """The text has the figures beside those of the null models; a folder of predictions is made."""
    data = folder(tmp_path / "data", gemm_bf16=products(["a100_sxm"]), maxmin_star_a=star(), notes="x")
    out = tmp_path / "new" / "predicted"
    text = partita.done("validate", "--fit", data, "--test", data, "--predictions", out)
    expected = ["gemm_bf16", "maxmin_star", "MAPE %", "roofline_3", "in-sample", "worst of", "left out: notes.csv"]
    assert [word for word in expected if word not in text] == []
    assert sorted(path.name for path in out.iterdir()) == ["gemm_bf16.csv", "maxmin_star.csv"]
    lines = (out / "maxmin_star.csv").read_text().splitlines()
    assert lines[0] == "file,flow,predicted_finish_s,low_finish_s,high_finish_s,provenance"
    assert lines[1].startswith("maxmin_star_a.json,0,2.000002,")
    assert "50" in partita.done("validate", "--fit", data, "--cross-validate", "5")


def test_wrong_calls(partita: CommandLine, tmp_path: Path) -> None:
    """One line each, exit code 2, and inputs are never written over."""
    data, empty = folder(tmp_path / "data", gemm_bf16=products(["a100_sxm"])), folder(tmp_path / "empty")
    call = ["validate", "--fit", data]
    assert_one_clear_line(partita(*call), 2, "--test", "--cross-validate")
    assert_one_clear_line(partita(*call, "--test", data, "--cross-validate", 2), 2, "either")
    assert_one_clear_line(partita(*call, "--test", tmp_path / "none"), 2, "none", "does not exist")
    assert_one_clear_line(partita(*call, "--test", data / "gemm_bf16.csv"), 2, "is a file", "give a folder")
    assert_one_clear_line(partita(*call, "--test", empty), 2, "no set of measurements", "gemm_bf16.csv")
    assert_one_clear_line(partita(*call, "--cross-validate", 1), 2, "folds", "at least 2")
    assert_one_clear_line(partita(*call, "--test", data, "--predictions", data), 2, "--predictions", "another folder")
    assert_one_clear_line(partita(*call, "--test", data, "--predictions", data / "gemm_bf16.csv"), 2, "is a file")
    (empty / "gemm_bf16.csv").symlink_to(data / "gemm_bf16.csv")
    assert_one_clear_line(partita(*call, "--test", data, "--predictions", empty), 2, "another folder")
    few = folder(tmp_path / "few", gemm_bf16="system,m,n,k,latency_ms\na100_sxm,1,1,1,1\n")
    assert_one_clear_line(partita("validate", "--fit", few, "--test", data), 2, "gemm_bf16.csv", "too few", "measure")
    zero = folder(tmp_path / "zero", gemm_bf16="system,m,n,k,latency_ms\na100_sxm,1,1,1,0\n")
    assert_one_clear_line(partita("validate", "--fit", zero, "--test", data), 2, "gemm_bf16.csv", "2", "latency_ms")
