"""A sweep that is killed (-9, its whole process group) goes on with every row that it had written, once each."""

from __future__ import annotations

from pathlib import Path

from tests.laws.sweeps.killing import killed_sweep


def test_a_killed_sweep_loses_and_doubles_no_row(tmp_path: Path) -> None:
    """Three times, at random points; `python -m tests.laws.sweeps` does it twenty times."""
    outcome = killed_sweep(tmp_path, kills=3, points=300, seed=1)
    assert (outcome.lost, outcome.doubled, outcome.is_right) == (0, 0, True)
    assert len(outcome.runs) == 4
