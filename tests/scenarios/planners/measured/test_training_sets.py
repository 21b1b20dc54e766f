"""The sets of training runs: no fit sees a measured cell of what it predicts, and what is held out together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.devices.calibration.validation import workers
from partita.devices.calibration.validation.predictions import write_predictions
from partita.devices.calibration.validation.report import document, notes
from partita.devices.calibration.validation.validation import cross_validate, validate
from partita.scenarios.planners.measured.training_sets import TRAINING_SETS, UNSEEN_MODEL, UNSEEN_SIZE
from tests.scenarios.planners.measured.folders import (
    MEMORY,
    ONE_NODE,
    TABLE1,
    TABLE5,
    TABLE5_LINE,
    one_node_lines,
    write,
)

STEP = "iteration time (ms)"


def test_a_fit_sees_no_measured_cell_and_files_are_the_same_bytes(tmp_path: Path) -> None:
    """Lines with empty cells, and the same lines again, are predicted alike, digit for digit."""
    fit = write(tmp_path / "fit", llm_training_single_node_a100=[ONE_NODE, *one_node_lines()[::2]])
    written = []
    for name, is_measured in (("full", True), ("bare", False), ("again", True)):
        lines = [ONE_NODE, *one_node_lines(is_measured=is_measured)[1::2]]
        test = write(tmp_path / name, llm_training_single_node_a100=lines)
        validation = validate(fit, test, sets=TRAINING_SETS)
        written.append(write_predictions(tmp_path / f"{name}_said", validation.predictions)[0].read_bytes())
    assert written[0] == written[1] == written[2]
    assert written[0].count(b"\n") == 13
    assert b",," not in written[0]


def test_models_and_cluster_sizes_are_held_out_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models and three sizes: no fold has lines of one on both sides, and every line is predicted in each way."""
    folder = write(tmp_path / "a", llm_training_single_node_a100=[ONE_NODE, *one_node_lines()])
    [of] = [each for each in TRAINING_SETS if each.name == "llm_training_single_node_a100"]
    rows = of.read(of.paths(folder), False)
    folds = of.folds(rows, 4)
    for part, column, count in ((UNSEEN_MODEL, "# layers", 2), (UNSEEN_SIZE, "# GPUs", 3)):
        own = [fold for fold in folds if fold.part == part]
        assert len(own) == count
        assert sorted(np.concatenate([fold.test for fold in own]).tolist()) == list(range(len(rows)))
        assert all(not set(rows.keys[column][it.fit]) & set(rows.keys[column][it.test]) for it in own)
    monkeypatch.setattr(workers, "num_cores", lambda: 1)  # no processes, which take longer than the fits
    parts = cross_validate(folder, 2, sets=TRAINING_SETS).parts
    assert [part.name for part in parts] == [None, UNSEEN_MODEL, UNSEEN_SIZE]
    assert all(np.isfinite(part.answer.columns[STEP].value).all() for part in parts)


def test_the_report_ranks_models_and_choices(tmp_path: Path) -> None:
    """A tau for each model, a choice for each model and number of GPUs, and what others publish."""
    folder = write(tmp_path / "a", llm_training_single_node_a100=[ONE_NODE, *one_node_lines()])
    validation = validate(folder, folder, sets=TRAINING_SETS)
    [entry] = document(validation)["sets"]
    ranks = entry["rankings"]
    assert {name: it["rows"] for name, it in ranks["kendall_tau_b"].items()} == {
        "GPT 8 x 1024": 12,
        "GPT 16 x 1024": 12,
    }
    assert len(ranks["best_that_fits"]) == 6
    assert all(it["chosen"] >= it["best"] for it in ranks["best_that_fits"].values())
    assert entry["published"] == [{"name": "vTrain", "mape_percent": 8.4}]
    assert [null["name"] for null in entry["null_models"]] == ["constant MFU"]
    text = "\n".join(notes(validation))
    assert "Kendall's tau-b of iteration time (ms) by model: GPT 8 x 1024" in text
    assert "of 6 choices" in text
    assert "published errors of iteration time (ms): vTrain 8.4 %" in text


def test_nothing_is_fitted_to_the_tables_of_megatron(tmp_path: Path) -> None:
    """Nor is a folder to fit to needed. Table 5 has the sizes of models in the table of memory; others are unknown."""
    test = write(
        tmp_path / "test",
        megatron_korthikanti2022_table5=[TABLE5, TABLE5_LINE],
        megatron_korthikanti2022_memory=[MEMORY, "175B,seqsel,32.9,26.5", "17B,none,1,1"],
        megatron_narayanan2021_table1=[TABLE1, "18.4,48,6144,40,8,1,256,1024,135,43,34.6"],
    )
    validation = validate(write(tmp_path / "empty"), test, sets=TRAINING_SETS)
    entries = {f"{it['set']} {it['part']}": it for it in document(validation)["sets"]}
    assert all(it["fitted_on_rows"] == 0 for it in entries.values())
    times = entries["megatron_korthikanti2022_table5 full_recompute_s"]
    assert [null["name"] for null in times["null_models"]] == ["half the peak"]
    memory = next(part for part in validation.parts if part.of.name == "megatron_korthikanti2022_memory").answer
    assert memory.provenance[1] == "unknown"
    for bounds in memory.columns.values():
        assert np.isnan(bounds.value[1])
        assert bounds.low[0] <= bounds.value[0] <= bounds.high[0]
    rate = validation.parts[-1].answer.columns["tflops_per_gpu"]
    assert 0 < rate.low[0] <= rate.value[0] <= rate.high[0] < 312
