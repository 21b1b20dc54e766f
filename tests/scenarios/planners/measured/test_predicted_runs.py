"""What is said of a run: the fastest of its splits that fits, and null models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis.strategies import floats, lists

from partita.scenarios.models.vit import VitModel
from partita.scenarios.planners.measured.null_models import fitted_share, null_gib, peak_ms
from partita.scenarios.planners.measured.predicted_runs import predicted_runs
from partita.scenarios.planners.measured.training_row import TrainingRow
from partita.scenarios.planners.measured.vtrain_tables import vtrain_rows
from partita.scenarios.planners.step import PlannedStep
from tests.scenarios.planners.measured.folders import ONE_NODE, TABLE1, one_node_lines, training_rows, write

ROW = vtrain_rows(dict(zip(ONE_NODE.split(","), one_node_lines()[0].split(","), strict=True)), [])[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainingRow:
    """A row that may have had one of many splits."""
    line = "18.4,48,6144,40,8,2,512,1024,135,43,34.6"
    folder = write(tmp_path_factory.mktemp("tables"), megatron_narayanan2021_table1=[TABLE1, line])
    return training_rows(folder / "megatron_narayanan2021_table1.csv")[0]


def test_the_fastest_split_that_fits_counts(run: TrainingRow) -> None:
    """As if each had been asked for alone."""
    alone = predicted_runs([evolve(run, splits=(split,)) for split in run.splits], None)
    whole = predicted_runs([run], None)
    assert len(run.splits) > 8
    assert alone.fits.any()
    assert whole.fits.tolist() == [True]
    assert whole.columns["step_ms"][0] == alone.columns["step_ms"][alone.fits].min()
    assert np.array_equal(alone.fits, alone.columns["reserved"] <= run.machine.memory_limit_bytes / 2**30)


def test_a_step_that_is_refused_leaves_the_others(run: TrainingRow) -> None:
    """There is no closed form of images: that run is unknown."""
    other = evolve(run, step=PlannedStep(VitModel(layers=12, hidden=768, heads=12, intermediate=3072), 197))
    said = predicted_runs([other, run], None)
    assert np.isnan(said.columns["step_ms"][0])
    assert (said.fits.tolist(), said.provenance[0]) == ([False, True], "unknown")
    assert said.columns["step_ms"][1] == predicted_runs([run], None).columns["step_ms"][0]


@given(lists(floats(0.2, 5), min_size=1, max_size=9))
def test_no_other_share_of_the_peak_is_nearer(factors: list[float]) -> None:
    """The fitted one has the least mean error of all that a row may have."""
    rows = [ROW] * len(factors)
    peak = peak_ms(rows)
    measured = [evolve(ROW, measured={"iteration time (ms)": ms}) for ms in (peak * factors).tolist()]

    def error(share: float) -> float:
        return float(np.abs(1 / (share * np.array(factors)) - 1).mean())

    assert error(fitted_share(measured)) <= min(error(1 / factor) for factor in factors) + 1e-12


def test_parameters_are_shared_out(tmp_path: Path) -> None:
    """18 bytes a parameter of a model on one GPU, half of them on each of two tensor-parallel ranks."""
    folder = write(tmp_path / "a", llm_training_single_node_a100=[ONE_NODE, *one_node_lines()])
    rows = training_rows(folder / "llm_training_single_node_a100.csv")
    sizes = null_gib(rows)["parameters"]["state_gib"] * 2**30
    for row, size in zip(rows, sizes, strict=True):
        assert size == pytest.approx(18 * row.step.model.parameters / row.split.tp)
