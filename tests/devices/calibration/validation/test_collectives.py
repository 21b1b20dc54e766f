"""The set of collectives: its two parts, its null models, and systems without curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation.collectives import COLLECTIVES_NCCL
from partita.devices.calibration.validation.predictions import write_predictions
from partita.devices.calibration.validation.report import document
from partita.devices.calibration.validation.validation import cross_validate, validate
from partita.errors import InvalidArgumentError
from tests.devices.calibration.validation.folders import folder

HEADER = "system,op_name,num_gpus,elements_fp16,latency_ms"


def curves(system: str, counts: tuple[int, ...], start: int = 0, step: int = 1, empty: bool = False) -> str:
    """Lines of four curves for each number of GPUs: 10 us and a 300 GB/s bus, every `step`-th size of twelve."""
    lines = []
    for op, passes in (("all_gather", 1), ("all_reduce", 2), ("alltoall", 1), ("reduce_scatter", 1)):
        for ranks in counts:
            for elements in [256 * 4**i for i in range(12)][start::step]:
                time_ms = 0.01 + 2e3 * elements * passes * (ranks - 1) / ranks / 300e9
                lines.append(f"{system},{op},{ranks},{elements},{'' if empty else f'{time_ms:.9g}'}")
    return "\n".join([*lines, ""])


def test_the_two_parts(tmp_path: Path) -> None:
    """Curves that the fit has are asked for other sizes, those that it lacks for another number of GPUs."""
    fit = folder(tmp_path / "fit", collectives_nccl=f"{HEADER}\n{curves('h100_sxm', (2, 4), 0, 2)}")
    text = f"{HEADER}\n{curves('h100_sxm', (8, 2), 1, 2)}"
    entries = document(validate(fit, folder(tmp_path / "test", collectives_nccl=text)))["sets"]
    assert [(entry["part"], entry["rows"], entry["fitted_on_rows"]) for entry in entries] == [
        ("unseen GPU count", 24, 48),
        ("sizes", 24, 48),
    ]
    assert [null["name"] for null in entries[0]["null_models"]] == ["log_log", "datasheet"]
    assert entries[1]["mape_percent"] < 10
    assert entries[0]["mape_percent"] < 40


def test_measured_cells_reach_no_fit(tmp_path: Path) -> None:
    """Predictions of sizes, of another count and of another system are the same bytes without times."""
    fit = folder(tmp_path / "fit", collectives_nccl=f"{HEADER}\n{curves('h100_sxm', (2, 4), 0, 2)}")
    texts = []
    for empty in (False, True):
        lines = [
            curves("h100_sxm", (2, 8), 1, 3, empty),
            curves("a100_sxm", (4,), 0, 4, empty),
            curves("mine", (2,), 0, 9, empty),
        ]
        test = folder(tmp_path / f"test{empty}", collectives_nccl=f"{HEADER}\n{''.join(lines)}")
        (path,) = write_predictions(tmp_path / "out", validate(fit, test).predictions)
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    lines = texts[0].splitlines()
    assert (
        lines[0]
        == "system,op_name,num_gpus,elements_fp16,predicted_latency_ms,low_latency_ms,high_latency_ms,provenance"
    )
    assert {line.rpartition(",")[2] for line in lines if line.startswith("a100")} == {"transferred from h100_sxm"}
    assert {line.partition(",")[2].split(",", 3)[3] for line in lines if line.startswith("mine")} == {",,,unknown"}


def test_the_null_model_of_an_unseen_count(tmp_path: Path) -> None:
    """The curve of the nearest count, scaled by the share of bytes that leave a rank: 7/8 by 3/4."""
    given = folder(tmp_path / "fit", collectives_nccl=f"{HEADER}\n{curves('h100_sxm', (2, 4))}")
    fit = COLLECTIVES_NCCL.read([given / "collectives_nccl.csv"], False)
    asked = folder(tmp_path / "test", collectives_nccl=f"{HEADER}\nh100_sxm,all_gather,8,256,\n")
    test = COLLECTIVES_NCCL.read([asked / "collectives_nccl.csv"], True)
    (job,) = COLLECTIVES_NCCL.jobs(fit, test)
    at_four = fit.measured["latency_ms"][12]
    assert job.run().nulls["log_log"]["latency_ms"] == pytest.approx([at_four * (7 / 8) / (3 / 4)])


def test_cross_validation_holds_out_a_count_too(tmp_path: Path) -> None:
    """The largest of a system with three; both parts are in the report, one file of predictions has all rows."""
    text = curves("a100_sxm", (2, 4, 8), step=2) + curves("l40s", (2, 4), step=2)
    data = folder(tmp_path / "d", collectives_nccl=f"{HEADER}\n{text}")
    validation = cross_validate(data, 2)
    entries = document(validation)["sets"]
    assert [(entry["part"], entry["rows"]) for entry in entries] == [("sizes", 120), ("unseen GPU count", 24)]
    (predictions,) = validation.predictions
    assert np.isfinite(predictions.answer.columns["latency_ms"].value).all()


def test_versions_are_joined_by_key(tmp_path: Path) -> None:
    """A file beside says with which library a row was measured, also a row to predict; others take their curve's."""
    lines = curves("h100_sxm", (2,), 0, 1).splitlines()
    versions = [f"{line.rpartition(',')[0]},nccl/2.{29 if ',256,' in line else 23}" for line in lines]
    text = "system,op_name,num_gpus,elements_fp16,collected_in\n" + "\n".join(reversed(versions))
    fit = folder(tmp_path / "fit", collectives_nccl=f"{HEADER}\n{curves('h100_sxm', (2,), 0, 1)}")
    (fit / "collectives_nccl_versions.csv").write_text(text)
    asked = folder(
        tmp_path / "test", collectives_nccl=f"{HEADER}\nh100_sxm,alltoall,2,256,\nh100_sxm,alltoall,2,512,\n"
    )
    (asked / "collectives_nccl_versions.csv").write_text(text)
    validation = validate(fit, asked)
    (predictions,) = validation.predictions
    assert list(predictions.answer.provenance) == ["fitted (NCCL 2.29)", "fitted (NCCL 2.23)"]
    assert not any("versions" in name for name in validation.left_out)


VTRAIN = "gpu,gpus,bytes,out_of_place_us,in_place_us"


def all_reduces(gpu: str, rings: dict[int, int], empty: bool = False) -> str:
    """Lines of one curve for each number of GPUs: 20 us, and so many rings of 22 GB/s."""
    lines = []
    for n, count in rings.items():
        for mib in (1, 2, 4, 8, 64, 256, 1024):
            time_us = 20 + 2e3 * (n - 1) / n * mib * 2**20 / (22e6 * count)
            lines.append(f"{gpu},{n},{mib * 2**20},{'' if empty else f'{time_us:.6g}'},1")
    return "\n".join([*lines, ""])


def test_counts_of_a_mesh_follow_from_its_rings(tmp_path: Path) -> None:
    """Three and seven V100s, which the fit lacks, within 4 %; measured cells reach no fit."""
    fit = folder(tmp_path / "fit", allreduce_vtrain=f"{VTRAIN}\n{all_reduces('v100', {2: 1, 4: 4, 8: 6})}")
    texts = []
    for empty in (False, True):
        lines = all_reduces("v100", {3: 2, 4: 4, 7: 4}, empty)
        test = folder(tmp_path / f"test{empty}", allreduce_vtrain=f"{VTRAIN}\n{lines}")
        validation = validate(fit, test)
        (path,) = write_predictions(tmp_path / "out", validation.predictions)
        texts.append(path.read_text())
        if not empty:
            entries = {entry["part"]: entry for entry in document(validation)["sets"]}
    assert texts[0] == texts[1]
    assert entries["unseen GPU count"]["rows"] == 14
    assert entries["unseen GPU count"]["mape_percent"] < 4
    assert entries["sizes"]["in_sample"]
    assert set(entries["sizes"]["by"]["gpus"]) == {"4"}


def test_every_count_of_a_model_is_left_out_once(tmp_path: Path) -> None:
    """Beside the folds of sizes, each curve is predicted from the others of its model."""
    data = folder(tmp_path / "d", allreduce_vtrain=f"{VTRAIN}\n{all_reduces('v100', {2: 1, 4: 4, 8: 6})}")
    entries = document(cross_validate(data, 2))["sets"]
    assert [(entry["part"], entry["rows"]) for entry in entries] == [("sizes", 21), ("unseen GPU count", 21)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("h100_sxm,gather,2,256,1", "gather"),
        ("h100_sxm,all_reduce,1,256,1", "num_gpus = 1"),
        ("h100_sxm,all_reduce,2,256,1", "collectives_nccl"),
    ],
)
def test_wrong_rows(line: str, words: str, tmp_path: Path) -> None:
    """An unknown op, one GPU alone, too few rows: with the file."""
    data = folder(tmp_path / "d", collectives_nccl=f"{HEADER}\n{line}\n")
    with pytest.raises(InvalidArgumentError, match=words) as error:
        validate(data, data)
    assert "collectives_nccl.csv" in str(error.value)
