"""The set of the benchmark page: what of a row reaches a prediction, and what is said of rows that nothing is known of.

AlexNet is the network with the fewest nodes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation.report import document
from partita.devices.calibration.validation.validation import Validation, cross_validate, validate
from partita.scenarios.scaling.cnn_scaling import CNN_SCALING

HEADER = "platform,variable_update,data,model,batch_per_gpu,gpus,images_per_s\n"
P100 = "DGX-1 P100,replicated(nccl),synthetic,AlexNet,512"
K80 = "GCE n1-standard-32 8xK80,see source,synthetic,AlexNet,512"
GIVEN = f"{P100},1,2987\n{K80},1,656\n"


def folder(path: Path, rows: str) -> Path:
    """A folder with such a file."""
    path.mkdir(exist_ok=True)
    (path / CNN_SCALING.files).write_text(HEADER + rows)
    return path


def predicted(validation: Validation) -> dict[tuple[str, int], float]:
    """The rates by platform and number of GPUs."""
    (it,) = validation.predictions
    keys = zip(it.rows.keys["platform"].tolist(), it.rows.keys["gpus"].tolist(), strict=True)
    return dict(zip(keys, it.answer.columns["images_per_s"].value.tolist(), strict=True))


def validated(tmp_path: Path, fit: str, test: str) -> Validation:
    """The validation of this set alone."""
    return validate(folder(tmp_path / "fit", fit), folder(tmp_path / "test", test), sets=[CNN_SCALING])


def test_one_gpu_is_met_and_more_are_predicted(tmp_path: Path) -> None:
    """Rates of one GPU are those of the fit; those of two are above one and below twice as much; null is twice."""
    asked = f"{P100},1,\n{P100},2,\n{K80},1,\n{K80},2,\n"
    validation = validated(tmp_path, GIVEN, asked)
    rates = predicted(validation)
    for platform, rate in ((P100.split(",")[0], 2987), (K80.split(",")[0], 656)):
        assert rates[platform, 1] == pytest.approx(rate, rel=1e-4)
        assert rate < rates[platform, 2] < 2 * rate
    (it,) = validation.predictions
    assert it.answer.nulls["linear"]["images_per_s"].tolist() == [2987, 5974, 656, 1312]
    assert it.answer.provenance[:2] == ("calibration", "simulated, calibrated on one GPU")
    bounds = it.answer.columns["images_per_s"]
    assert np.all((bounds.low < bounds.value) & (bounds.value < bounds.high))


def test_one_gpu_is_simulated_with_nothing_fitted(tmp_path: Path) -> None:
    """Where the fit lacks the row of one GPU, no row of it changes what is said, not even of the same GPU."""
    asked, other = f"{P100},1,\n", f"{P100.replace('512', '256')},1,1000\n"
    for given in (f"{K80},1,656\n", f"{K80},1,900\n", f"{K80},1,656\n{other}"):
        validation = validated(tmp_path, given, asked)
        rate = predicted(validation)[P100.split(",")[0], 1]
        assert rate == pytest.approx(2987, rel=0.25)  # images/s, TensorFlow's benchmark page of 2017
        assert validation.predictions[0].answer.provenance == ("simulated",)


def test_measured_cells_reach_no_prediction(tmp_path: Path) -> None:
    """Only keys of the test do; rows of the fit on several GPUs change what others are predicted to be."""
    asked = f"{P100},4,"
    empty = predicted(validated(tmp_path, GIVEN, f"{asked}\n"))
    assert predicted(validated(tmp_path, GIVEN, f"{asked}1\n")) == empty
    slower = predicted(validated(tmp_path, f"{GIVEN}{P100},2,4500\n", f"{asked}\n"))
    assert list(slower.values()) < list(empty.values())


def test_rows_of_nobody_are_unknown(tmp_path: Path) -> None:
    """An unknown platform, network, update, or more GPUs than a host has; without its row of one GPU a near one's."""
    unknown = [
        P100.replace("DGX-1", "DGX-9") + ",2,",
        P100.replace("AlexNet", "LeNet") + ",2,",
        P100.replace("replicated(nccl)", "by hand") + ",2,",
        f"{P100},16,",
    ]
    asked = [*unknown, P100.replace("512", "256") + ",2,"]
    (it,) = validated(tmp_path, GIVEN, "\n".join(asked) + "\n").predictions
    *nothing, other = it.answer.provenance
    assert nothing == ["unknown"] * len(unknown)
    assert other == "simulated, kernels as of AlexNet on DGX-1 P100"
    assert np.isfinite(it.answer.columns["images_per_s"].value).tolist() == [False] * len(unknown) + [True]


def test_curves_are_held_out_whole(tmp_path: Path) -> None:
    """Rows of several GPUs are predicted from those of one, these from none; errors are split by platform, network."""
    given = folder(tmp_path / "fit", f"{GIVEN}{P100},2,5600\n{K80},2,1200\n{K80},4,2300\n")
    report = document(cross_validate(given, 5, sets=[CNN_SCALING]))
    entry, one = report["sets"]
    assert (entry["part"], entry["rows"], entry["fitted_on_rows"]) == ("several GPUs", 3, 3)
    assert (one["part"], one["rows"], one["fitted_on_rows"]) == ("one GPU", 2, 3)
    assert one["mape_percent"] < 40
    assert list(entry["by"]) == ["platform", "model"]
    assert entry["by"]["model"]["AlexNet"]["rows"] == 3
    assert entry["mape_percent"] < 15
