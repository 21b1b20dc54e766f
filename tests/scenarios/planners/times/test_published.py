"""Steps of Megatron-LM whose times papers print, to which no number was fitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partita.scenarios.planners.measured.predicted_runs import PredictedRuns, predicted_runs
from partita.scenarios.planners.measured.training_row import TrainingRow
from tests.scenarios.planners.measured.folders import TABLE1, TABLE5, TABLE5_LINE, training_rows, write

TABLE1_LINES = ("18.4,48,6144,40,8,1,256,1024,135,43,34.6", "145.6,96,12288,80,8,8,1536,2304,148,47,227.1")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[TrainingRow]:
    """Korthikanti et al. 2022, table 5, GPT-3; Narayanan et al. 2021, table 1, two of its models."""
    tables = {
        "megatron_korthikanti2022_table5": [TABLE5, TABLE5_LINE],
        "megatron_narayanan2021_table1": [TABLE1, *TABLE1_LINES],
    }
    folder: Path = write(tmp_path_factory.mktemp("tables"), **tables)
    return [row for name in tables for row in training_rows(folder / f"{name}.csv")]


@pytest.fixture(scope="module")
def said(runs: list[TrainingRow]) -> PredictedRuns:
    return predicted_runs(runs, None)


def test_times_are_near_those_that_papers_print(runs: list[TrainingRow], said: PredictedRuns) -> None:
    assert len(runs) == 4
    off = np.abs(said.columns["step_ms"] / [row.step_ms for row in runs] - 1)
    assert off.mean() < 0.05
    assert off.max() < 0.11
    assert said.fits.all()
    assert set(said.provenance) == {"fitted"}


def test_intervals_hold_what_was_measured(runs: list[TrainingRow], said: PredictedRuns) -> None:
    """Four of five, and so most of these."""
    measured = np.array([row.step_ms for row in runs])
    held = (said.columns["step_ms_low"] < measured) & (measured < said.columns["step_ms_high"])
    assert held.sum() >= 3
